//! What the tour shows, and what the project's documents say.

mod documents; // paths, names of tests and commands in README and ARCHITECTURE
mod tour; // the program's output
