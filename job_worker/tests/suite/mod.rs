use super::{Conn, Db};

#[cfg(feature = "tokio")]
mod async_beside;
#[cfg(feature = "tokio")]
mod async_jobs;
#[cfg(feature = "tokio")]
mod async_stopping;
#[cfg(feature = "tokio")]
mod async_transactions;
mod discards;
mod idle;
mod logging;
mod outcomes;
mod panics;
mod pools;
mod processes;
mod rescue;
#[cfg(feature = "tokio")]
pub(super) mod scene;
pub(super) mod stage;
mod starting;
mod stopping;
pub(super) mod transactions;
mod whole_way;
