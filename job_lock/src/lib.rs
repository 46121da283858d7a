//! Named locks in the database that a [Diesel] app already has. A row of the table `locks` is a mutex: among all
//! processes that use the database, one at a time runs the closure.
//!
//! ```
//! # #[cfg(feature = "sqlite")]
//! # fn main() -> anyhow::Result<()> {
//! # use diesel::Connection;
//! # let conn = &mut diesel::SqliteConnection::establish(":memory:").unwrap();
//! # job_lock::migrate(conn).unwrap();
//! use diesel::prelude::*;
//! use job_lock::Lock;
//!
//! # diesel::sql_query("CREATE TABLE reports (day TEXT)").execute(conn)?;
//! Lock::create(conn, "nightly-report")?; // once, such as at the app's start
//!
//! Lock::synchronize(conn, "nightly-report", |locked| {
//!     diesel::sql_query("INSERT INTO reports VALUES ('today')").execute(locked.conn())?;
//!     anyhow::Ok(())
//! })?;
//! # Ok(())
//! # }
//! # #[cfg(not(feature = "sqlite"))]
//! # fn main() {}
//! ```
//!
//! The closure's error may be `anyhow::Error`, Diesel's own, [`LockError`], or any type with a `From<LockError>`. Options
//! stand in [`LockOptions`]: how long to [`Wait`], whether to join a transaction, whether to make the lock.
//!
//! # What is guaranteed
//!
//! - **Without the lock the closure does not run.** A lock that does not exist is [`LockError::Unknown`].
//! - **The lock is the transaction.** It is held from before the closure's first statement to the COMMIT. Whatever ends the
//!   one ends the other: a crash, a killed session, a lost network. The next holder sees all that this one has
//!   committed and nothing else, and a holder that has lost its session has lost its writes too.
//! - **An `Ok` was committed.** An error at COMMIT is an error, and so is a transaction that the database gave up while the
//!   closure swallowed the reason.
//! - **An error or a panic rolls back**, and the connection can be used again, also by a pool.
//! - **[`Locked::token`] only grows** from one holder that commits to the next.
//! - **No hang by deadlock**: the database ends one of the two with [`LockError::Deadlock`]. (On a MySQL server with
//!   `innodb_deadlock_detect` off, its `innodb_lock_wait_timeout` does that.)
//!
//! # What is not
//!
//! - Effects outside the database, such as a mail or a file, are not undone by a rollback, and may still be under way when
//!   the session is dead and the next holder works. Send [`Locked::token`] along, and have the other side refuse lower ones.
//! - A transaction is open while the closure runs, and a connection with it. For minutes, that holds up vacuuming or
//!   purging on a server; on SQLite **every lock excludes every other writer of the file**.
//! - Locks of different names do not exclude each other (but for SQLite), and one who does not ask for the lock is not kept
//!   from anything.
//! - There is no fairness beyond the database's own queue, which [`Wait::AtMost`] and SQLite do not have.
//! - In PostgreSQL `now()` is the start of the transaction, which is before the wait for the lock.
//! - The binary must unwind on panics; with `panic = "abort"` the dying session is what rolls back.
//!
//! This crate starts no thread. It never sleeps either, with one exception: where a wait has no queue in the database
//! ([`Wait::AtMost`], and [`Wait::Forever`] on SQLite), the calling thread sleeps some milliseconds between two looks, with
//! jitter, and with no transaction of its own open.
//!
//! # Where the idea comes from
//!
//! A post of 2007 made a mutex for Rails apps of a row: `Lock.synchronize("name") { ... }` opens a transaction, does
//! `SELECT ... WHERE name = ? FOR UPDATE`, and yields. Its flaw: where nobody had made the row, the SELECT found nothing to
//! lock, and the block ran with no lock at all. Here the first statement is an UPDATE that must hit exactly one row.
//!
//! [Diesel]: https://diesel.rs

mod acquire;
mod alone;
mod backend;
mod connect;
mod create;
mod error;
mod leader;
mod lease;
mod lock;
mod locked;
mod name;
mod options;
mod owner;
mod row;
mod slot;
mod synchronize;
mod wait;
mod watch;

#[cfg(feature = "mysql")]
mod mysql;
#[cfg(feature = "postgres")]
mod postgres;
#[cfg(feature = "sqlite")]
mod sqlite;

pub use backend::{LockBackend, LockConnection};
pub use connect::{Connect, Unprepared};
pub use error::LockError;
pub use job_db::{MigrateError, migrate};
pub use leader::{Leader, Term};
pub use lease::{Lease, LeaseOptions};
pub use lock::Lock;
pub use locked::Locked;
pub use options::LockOptions;
pub use row::{LockRow, LockState};
pub use slot::Slot;
pub use wait::Wait;
