use super::{Conn, Db, only};

mod support; // jobs, workers, claims for all

mod bulk; // enqueue_all
mod change; // cancel, discard, retry
mod charging; // what an attempt costs
mod claim; // who gets what
mod enqueue; // options and defaults
mod fence; // who may record an outcome
mod finders; // find, filter, counts
mod limits; // what is refused
mod names; // any text is a name, byte by byte
mod transactions; // enqueueing in the caller's transaction
