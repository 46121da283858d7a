//! Servers of one's own, for tests that stop or kill one. They keep all the promises of a server in production about what
//! is committed.
