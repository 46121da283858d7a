use super::{Conn, Db, on};
#[allow(unused_imports)] // There is no server of SQLite's.
pub(super) use faults::a_lease_outlives_a_restart;

// Points 1 to 9 of what a lock must do, in their order.
mod commits; // 6: an Ok was committed
mod endings; // 6: transactions that end before the closure does
mod existence; // 1: without a row the closure does not run
mod joining; // 2: inside a caller's transaction
mod listing;
mod panics; // 5: a panic rolls back
mod reentrance; // 7: the same name again, several names, deadlocks
mod tokens; // 3: the first statement, its token and its isolation
mod waiting; // 4: forever, at most, not at all
mod writes; // 8: the closure's connection, and its errors // 9: who holds what; a lock that was held too long

mod exclusion; // one at a time, under every setting
mod names; // which names there are

mod connections; // in a transaction, dead, refused
mod delays; // late renewals, other clocks
mod faults; // networks and servers that fail
pub(super) mod suspensions; // in the middle of a step
mod threads; // that cannot be started

mod child; // other processes, for kills
mod kills; // holders that are killed, suspended, cut off
mod leaders;
mod leases;
mod losses; // of slots, while their holders do nothing
mod slots;

mod support; // holders in other threads, a counter that is not atomic
