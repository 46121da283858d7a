use super::{Conn, Db, only};

pub(super) mod support; // jobs, workers, claims for all

mod arguments; // what a job may be given
mod async_kinds; // jobs that are performed as futures are enqueued alike
mod bulk; // enqueue_all
mod change; // cancel, discard, retry
mod charging; // what an attempt costs
mod claim; // who gets what
mod clock; // times are the database's, in UTC
mod completions; // many at once
mod crowd; // many that claim at once
mod discards; // completed and deleted in one
mod enqueue; // options and defaults
mod fence; // who may record an outcome
mod finders; // find, filter, counts
mod housekeeping; // promote, rescue, prune
mod limits; // what is refused
mod names; // any text is a name, byte by byte
mod outcomes; // whatever a job ends with is recorded
mod run; // what a job does in a transaction of its own
mod schema; // the tables as Diesel sees them
mod storm; // everybody at once
mod transactions; // enqueueing in the caller's transaction
mod unique; // one job at a time for a key
mod unmigrated; // errors where there are no tables
mod workers; // the rows of those that claim
