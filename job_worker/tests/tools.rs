//! What only these tests need: a network that fails, and other processes.

pub(crate) mod child;
#[cfg(any(feature = "postgres", feature = "mysql"))]
pub(crate) mod proxy;
