//! The program is in `main.rs`. Here the Rust of the project's README and ARCHITECTURE is compiled and run, so that it stays
//! true: `cargo test -p quickstart --doc`.

#[cfg(doctest)]
#[doc = include_str!("../../../README.md")]
mod readme {}

#[cfg(doctest)]
#[doc = include_str!("../../../ARCHITECTURE.md")]
mod architecture {}
