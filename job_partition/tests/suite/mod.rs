use super::{
    Conn, Db, IMPLICIT_COMMIT, KILL, LOCKED_TABLE, MANY, PLACEHOLDER, REFUSE_AT_COMMIT, SESSION, SHORT_IDLE,
    SWALLOWED_ROLLBACK, UUID, literal, uuid,
};

mod completion; // is proved
mod connections; // that are refused
mod control; // pause, stop, throttle, progress
mod ends; // of transactions, behind the run's back
mod failures; // poison rows, panics
mod inserts; // while a run goes on
pub(super) mod items; // the table of the tests
mod keys; // both covers on every kind of key, and odd tables
mod kills; // holders of a batch that are killed, suspended, cut off
mod loops; // closures that mark nothing
mod many; // partitions
mod options; // what cannot be
mod processes; // several, and ones that are killed
mod refusals; // by the database, of one row again and again
mod unique; // keys
