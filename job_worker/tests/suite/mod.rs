use super::{Conn, Db};

mod discards;
mod idle;
mod logging;
mod outcomes;
mod panics;
mod pools;
mod processes;
mod rescue;
pub(super) mod stage;
mod starting;
mod stopping;
mod transactions;
mod whole_way;
