//! What only these tests need: a network that fails, other processes, and a log that is kept.

pub(crate) mod capture;
pub(crate) mod child;
#[cfg(any(feature = "postgres", feature = "mysql"))]
pub(crate) mod proxy;
