//! Named locks in the database that a [Diesel] app already has. A row of the table `locks` is a mutex: among all
//! processes that use the database, one at a time runs the closure. For long work there are leases, leaders and slots.
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
//! # When to use which
//!
//! | for | use | held | needs |
//! |---|---|---|---|
//! | work of a second or so that writes to this database | [`Lock::synchronize`] | as long as its transaction | a connection |
//! | one run of minutes or hours, such as an import | [`Lock::lease`] | until it ends, or one `ttl` after its process died | two connections, a thread |
//! | a duty that some process must always have, such as a scheduler | [`Leader`] | for a term; another follows | the same, in each candidate one connection |
//! | a fixed number of workers that divide the work by number | [`Slot`] | as long as its session | a connection and a thread for each worker |
//! | all rows of a big table, by workers that come and go | `Partition` of the crate `job_partition` | for one batch | a connection for each worker |
//! | work that must be done even if this process dies now | a job of the crate `job_core` | – | a worker |
//!
//! Where work fits into a transaction, take [`Lock::synchronize`]: it is the only one of these that cannot be lost without
//! its writes being lost too. With each of the others, what is done in its `transaction` is as safe, and everything else
//! is not: it may still be under way when another holder has begun.
//!
//! ```
//! # #[cfg(feature = "sqlite")]
//! # fn main() -> anyhow::Result<()> {
//! # let db = job_test::sqlite::Db::new();
//! # db.execute("CREATE TABLE orders (id BIGINT)");
//! # let pool = db.pool(4);
//! # job_lock::Lock::create(&mut db.connect(), "nightly-import")?;
//! use diesel::prelude::*;
//! use job_lock::Lock;
//! use std::time::Duration;
//!
//! let connections = pool.clone(); // or Arc::new(ConnectionManager::<PgConnection>::new(&url))
//! Lock::lease(&connections, "nightly-import", Duration::from_secs(30), |lease| {
//!     for file in ["orders-1.csv", "orders-2.csv"] {
//!         lease.check()?; // before what must not be done beside another holder: here, a download
//!         lease.transaction(|conn| {
//!             // Committed only if the lease is still ours.
//!             diesel::sql_query("INSERT INTO orders VALUES (1)").execute(conn)?;
//!             anyhow::Ok(())
//!         })?;
//!         println!("{file} is imported");
//!     }
//!     anyhow::Ok(())
//! })?;
//! # Ok(())
//! # }
//! # #[cfg(not(feature = "sqlite"))]
//! # fn main() {}
//! ```
//!
//! # What `synchronize` guarantees
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
//! # What it does not
//!
//! - Effects outside the database, such as a mail or a file, are not undone by a rollback, and may still be under way when
//!   the session is dead and the next holder works. Send [`Locked::token`] along, and have the other side refuse lower ones.
//! - A transaction is open while the closure runs, and a connection with it. For minutes, that holds up vacuuming or
//!   purging on a server; on SQLite **every lock excludes every other writer of the file**.
//! - A COMMIT or ROLLBACK of your own in the closure ends the transaction and with it the lock; on MySQL and MariaDB DDL does
//!   so too, and a deadlock whose error the closure swallows. What was committed so cannot be taken back, nor what the closure
//!   writes afterwards; but it is noticed at the closure's end, and then it is [`LockError::Lost`] and never an `Ok`.
//! - Locks of different names do not exclude each other (but for SQLite), and one who does not ask for the lock is not kept
//!   from anything.
//! - There is no fairness beyond the database's own queue, which [`Wait::AtMost`] and SQLite do not have. On PostgreSQL it is
//!   first come, first served, but for those who [`join`](LockOptions::join).
//! - In PostgreSQL `now()` is the start of the transaction, which is before the wait for the lock.
//! - The binary must unwind on panics; with `panic = "abort"` the dying session is what rolls back.
//!
//! # What leases and leaders guarantee, and what they do not
//!
//! - **One holder by the database's clock.** A lease is taken by one compare-and-set, renewed and given back only by who
//!   has its token, and ends at a time that the database's clock decides. No other clock enters a statement, so that
//!   machines may disagree about the time by minutes. (If the database's own clock is set forward, leases end earlier.)
//! - **One at a time in fenced transactions**, whatever is suspended, cut off or slow: their first statement proves that the
//!   lease is this holder's, and locks its row until the commit. A successor waits for that, or has come first, and then
//!   it fails.
//! - **A loss is an error, also where the closure succeeded.** What was fenced before is committed all the same.
//! - **A holder knows by itself when it may no longer trust its lease**, also when the network swallows everything or the
//!   machine has slept: one `ttl` after the start of the last renewal that succeeded, less a tenth.
//! - **If a holder dies, another can have the lease** after at most one `ttl`; a candidate looks often enough to lead
//!   within two. So too if it is suspended, also in the middle of a renewal; but not before the end of a fenced transaction
//!   that it is in, which keeps the row.
//! - Effects outside fenced transactions may overlap with a successor's: between the last [`Lease::check`] and the effect
//!   the process may be suspended for as long as you like. [`Lease::token`] is what the other side can tell them by.
//! - A closure is not stopped when its lease is lost. It must ask.
//! - A COMMIT or ROLLBACK of your own in a fenced transaction ends it, and with it the fence; so do DDL, and a deadlock that
//!   the closure swallows, on MySQL and MariaDB. As with `synchronize` it is noticed at the closure's end.
//! - A fenced transaction holds up the renewal; keep it shorter than the `ttl`.
//!
//! A lease and `synchronize` on the same name exclude each other. Who waits for a lease looks some twenty times a second;
//! there is no queue. (A `synchronize` that was told to [`join`](LockOptions::join) does not wait for a lease; on MySQL and
//! MariaDB the lease's renewal has to wait for that transaction's end then, so roll it back.)
//!
//! # Behind a proxy
//!
//! With a proxy that gives one session to several clients, such as PgBouncer in transaction mode, `synchronize`, leases
//! and leaders are right, since each of their steps is one transaction; but Diesel must keep no prepared statements:
//! [`Unprepared`] does that for leases, `conn.set_prepared_statement_cache_size(CacheSize::Disabled)` for a connection
//! of your own. A [`Slot`] is a session's, and refuses: see there for what it cannot detect.
//!
//! # Threads
//!
//! A lease has a thread that renews it, and a leader a second one that watches the first. A slot has one that asks
//! whether its session still has it, or on SQLite, where it is a lease, renews it. Each ends with what it attends to; only
//! where its connection hangs, it is left to end when that does, since nothing can end a thread from outside. Where no
//! thread can be started, the closure does not run, and a slot is not claimed. Who waits for a
//! lock that has no queue ([`Wait::AtMost`], a lease, everything on SQLite) sleeps some milliseconds between two looks, with
//! jitter; nothing sleeps with a transaction open.
//!
//! # Where the ideas come from
//!
//! A post of 2007 made a mutex for Rails apps of a row: `Lock.synchronize("name") { ... }` opens a transaction, does
//! `SELECT ... WHERE name = ? FOR UPDATE`, and yields. Its flaw: where nobody had made the row, the SELECT found nothing to
//! lock, and the block ran with no lock at all. Here the first statement is an UPDATE that must hit exactly one row.
//!
//! A talk of 2012 made a number of each worker: it takes the first free integer by an advisory lock, and works on the rows
//! whose id leaves that remainder. Its flaws: the key was everybody's on that database, and the lock went with the session,
//! silently, while the worker went on. Here a [`Slot`] has a namespace, it asks every heartbeat whether it is still held, and
//! its transactions fail when the session is not the one that has the lock.
//!
//! [Diesel]: https://diesel.rs

// Without a database there is nothing to use it with. What the compiler says of the app comes first then.
#![cfg_attr(
    not(any(feature = "postgres", feature = "mysql", feature = "sqlite")),
    allow(unused)
)]

mod acquire;
mod alone;
mod attendant;
mod backend;
mod connect;
mod create;
mod error;
mod leader;
mod lease;
mod lock;
mod locked;
mod mark;
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
pub use slot::{Slot, SlotOptions};
pub use wait::Wait;
