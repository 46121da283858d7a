use super::{Conn, Db};

mod clock; // what time it is
mod copy; // migrations that an app owns
mod faults; // errors that may be tried again
mod migrate; // making and updating the tables
mod refuse; // when migrate must not
mod transactions; // depth, panics, the write lock
mod types; // instants and documents
