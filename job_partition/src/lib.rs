//! All rows of a big table, worked through by many workers, threads and processes, with no other table: a backfill, a
//! migration of data, a recount. It needs no job queue; workers also find it as `job_worker::Partition`.
//!
//! ```
//! # #[cfg(feature = "sqlite")]
//! # fn main() -> anyhow::Result<()> {
//! # use diesel::connection::SimpleConnection;
//! # let folder = std::env::temp_dir().join(format!("gatun-partition-doc-{}", std::process::id()));
//! # std::fs::create_dir_all(&folder)?;
//! # let url = folder.join("app.sqlite3").to_str().unwrap().to_owned();
//! # SqliteConnection::establish(&url)?.batch_execute(
//! #     "CREATE TABLE accounts (id BIGINT PRIMARY KEY, name TEXT NOT NULL, digest TEXT);
//! #      INSERT INTO accounts VALUES (-1, 'Ann', NULL), (2, 'Bob', NULL)")?;
//! use diesel::prelude::*;
//! use diesel::r2d2::ConnectionManager;
//! use diesel::sql_types::{BigInt, Text};
//! use job_partition::{Key, Outcome, Partition};
//!
//! # diesel::table! { accounts (id) { id -> BigInt, name -> Text, digest -> Nullable<Text>, } }
//! #[derive(QueryableByName)]
//! struct Account {
//!     #[diesel(sql_type = BigInt)]
//!     id: i64,
//!     #[diesel(sql_type = Text)]
//!     name: String,
//! }
//!
//! let report = Partition::of("accounts")
//!     .key("id", Key::Integer)
//!     .pending("digest IS NULL")
//!     .columns("id, name")
//!     .threads(2)
//!     .run(&ConnectionManager::<SqliteConnection>::new(&url), |batch: &[Account], conn| {
//!         for account in batch {
//!             diesel::update(accounts::table.find(account.id))
//!                 .set(accounts::digest.eq(account.name.to_lowercase()))
//!                 .execute(conn)?;
//!         }
//!         Ok(())
//!     })?;
//!
//! match report.outcome {
//!     Outcome::Complete { rows } => println!("{rows} rows done by this process; nothing is pending"),
//!     Outcome::Incomplete { .. } => println!("{report}"), // with the rows that failed, and why
//!     Outcome::Stopped => println!("stopped; the next run goes on from here"),
//! }
//! # assert_eq!(report.outcome, Outcome::Complete { rows: 2 });
//! # std::fs::remove_dir_all(&folder)?;
//! # Ok(())
//! # }
//! # #[cfg(not(feature = "sqlite"))]
//! # fn main() {}
//! ```
//!
//! Start it as often as you like, on as many machines as you like, with different numbers of threads and sizes of batches.
//! A worker that is alone covers the whole table; one that arrives takes part at the next batch; what one that dies had in
//! hand is rolled back and done by another.
//!
//! # How it goes
//!
//! The rows are shared out among *partitions*, many more than there are workers: 64 if not said otherwise. A partition is
//! not a worker's: its lock is taken for one batch, in these steps.
//!
//! 1. BEGIN, at READ COMMITTED.
//! 2. The partition's lock, if it is free: `pg_try_advisory_xact_lock` on PostgreSQL, `GET_LOCK` on MySQL and MariaDB, the
//!    file's write lock on SQLite. If it is not free, another partition is next.
//! 3. The next pending rows of the partition in the key's order, each locked; rows that others have locked are passed over.
//! 4. The closure, which does them and marks them, so that they are no longer pending.
//! 5. A check that none of them is, and that the transaction is still this one; COMMIT.
//!
//! When every partition was drained under its lock, the whole table is looked at once more. If rows are pending, such as
//! those that were locked by others or committed with a low key behind everybody's back, their partitions are opened
//! again. If not, the run is [`Outcome::Complete`].
//!
//! # What is guaranteed
//!
//! - **Each row is done once.** That it is done stands in the row and is committed with what the closure did; a row is looked
//!   at again, locked, in the transaction that does it. Row locks and the condition see to that, whatever the partitions:
//!   workers with other options, and other versions of the program, are safe beside each other.
//! - **A lost lock is a lost transaction.** Lock, rows and work are of one session, and go together.
//! - **`Complete` was seen**: at one moment, after all partitions had been drained, nothing was pending. What is inserted
//!   later is a later run's.
//! - **A row that fails is found**: its batch is halved until it is alone, it is reported with its key and the error, and left
//!   as it was. All others are done. A panic is such a failure.
//! - **A closure that marks nothing is an error**, [`PartitionError::NotMarked`], and not an endless loop. So is one that
//!   changes the key, by which rows come again for ever: [`PartitionError::NoEnd`].
//! - **A closure that ends the transaction is found out**: by a COMMIT or ROLLBACK of its own, by DDL on MySQL and MariaDB,
//!   or by going on after an error that rolled everything back, such as a deadlock there or SQLite's `OR ROLLBACK`. Its
//!   rows are failures that say so, never rows that are done. What it committed by that stays, and cannot be taken back.
//! - **Keys that lead in a circle are an error**, [`PartitionError::Circle`]: such as those that a connection reads with a loss,
//!   or whose index was built in another order than that in which the database compares them now. Columns of whose type or
//!   class of values that is known are refused, [`PartitionError::WrongKey`]: ENUM, SET and BIT on MySQL and MariaDB, and on
//!   SQLite values of another class than the key's.
//! - **What others have not committed does not count.** All looks are at READ COMMITTED, whatever the session's level.
//! - **Rows that come while the run goes on**, wherever their keys lie, are done by it if they are committed before its last
//!   look; the others are a later run's.
//! - **Lost connections, deadlocks and serialization failures are tried again**, with growing pauses. A batch that the
//!   database refuses again and again, be it at COMMIT, is halved like one that failed; its halves are tried three times
//!   each, a row that is alone as often as the batch. An error of another kind is halved at once, with no pause.
//! - **A thread that gets no connection** for as long as [`Partition::patience`] says, such as for a limit of the server or of
//!   a pool, leaves with a warning in the log while others go on. When none is left, the run is an error.
//! - **Nothing but transactions on PostgreSQL**: no session's locks, and no settings that outlast one. A proxy in transaction mode may stand
//!   between, if prepared statements are not kept: [`Partition::statement_cache`].
//!
//! The locks of the partitions keep workers out of each other's way, and make "drained" mean something. They are not what
//! makes it right. Their numbers come from a hash of the table, the key, the cover, the boundaries and the
//! [name](Partition::name), so that they are shared with nobody else in the database.
//!
//! # What is not
//!
//! - **Effects outside the transaction**, such as a mail or a file, are not undone when a batch is rolled back, and are done
//!   again with it; by halving, up to as often as the batch can be halved. Make them idempotent, or enqueue a job in the
//!   transaction.
//! - A row that is *changed* so that it becomes pending again is done again.
//! - The key must be unique, as its column compares it (an index on SQLite with a stricter collation than the column's does not
//!   make it so, and is not noticed), and must not be changed by the closure. Without a primary key or a unique index of that column
//!   alone the run is refused, [`PartitionError::NotUnique`]; [`Partition::key_is_unique`] is for views and the like, and then
//!   nothing looks for equal keys. Integers are those of 64 bits with a sign. A pending
//!   row whose key is NULL ends the run, [`PartitionError::NullKey`], at its start if it is there by then.
//! - The transaction is as long as the batch. On SQLite nobody else writes meanwhile; on servers, others who write the same
//!   rows wait. Small batches and [`Partition::target`] are for that.
//! - The closure must hand on the errors of its statements, and must not end the transaction. That it has is found after it
//!   has: between the end and the run's next look, other workers may have done the same rows. And it is not found where the
//!   closure's own error, after the end, is a deadlock, a lost connection or another that is tried again.
//! - On MySQL and MariaDB the level is set once for each connection of the run; a closure that sets its session to another
//!   one has batches at that level.
//! - The condition and the columns are SQL without binds: placeholders outside of quotes and comments are refused, as are
//!   quotes and parentheses that are not closed. Beyond that the SQL is not understood, and never to be made of what
//!   strangers have typed.
//! - The last look reads the whole table, unless an index serves the condition. Where closures delete rows, what is pending
//!   is counted besides, once or twice in a run, to tell a deletion from a change of the key.
//! - On top of bare batches, the look for an early end costs a savepoint for each: one statement on PostgreSQL; two on MySQL
//!   and MariaDB.
//! - A binary with `panic = "abort"` ends at a panic. Nothing is lost by that, and nothing is halved.
//!
//! # Tables that others fill and empty, and views
//!
//! In a table like a queue, whose rows others insert and delete meanwhile, the closure may delete the rows instead of marking
//! them. Each row that is pending and not deleted by others is done once, and a row is not deleted by others while a batch has
//! it. `Complete` means what it always does: one look found nothing pending. Where rows come faster than they are done,
//! there is no such look: the run goes on until [`Control::stop`], or ends with [`PartitionError::NoEnd`] where the closure
//! deletes. Give [`Partition::pending`] a bound then, such as `created_at <` a moment, so that what comes later is a later
//! run's. A row that comes with the key of one that failed in this run is taken for it, and a later run's as well.
//!
//! A view has no index, so that it takes [`Partition::key_is_unique`]; its condition and its order should be served by an index
//! of its tables. On PostgreSQL, MySQL and MariaDB the rows of its tables are locked, and a view whose rows cannot be (with
//! GROUP BY, DISTINCT and the like) is an error, on the latter two [`PartitionError::NoRowLocks`]. On SQLite the file's write lock guards the rows of any view; but each
//! batch takes it by an UPDATE of no row, which a view allows only if it has a trigger INSTEAD OF UPDATE, whatever that does.
//! The closure writes to the tables, or to the view where that is possible.
//!
//! # Ranges or remainders
//!
//! [`Cover::Range`] is right for almost every table. Integers and UUIDs are halved where most rows are, at multiples of
//! powers of two, by looks that an index serves; the boundaries of texts come from one walk along the index, in the order of
//! the column's own collation. [`Cover::Modulo`] needs no boundaries, and reads the whole index for each
//! partition.
//!
//! # Where the idea comes from
//!
//! "A worker is a number" (2012): N processes over one table of millions of rows, each of which took the first free integer
//! with `pg_try_advisory_lock(i)` and did the rows whose `id mod N` was that integer. No two touched a row, and nothing else
//! was needed. Its flaws: with fewer than N processes, some rows were never done; the integers were shared with
//! everyone on that database; the lock went with the session, silently, while the worker went on; nothing said when a row, or
//! the whole table, was done; and a negative id fell in no slot. Each of them is a test here.

// Without a database there is nothing to use it with. What the compiler says of the app comes first then.
#![cfg_attr(
    not(any(feature = "postgres", feature = "mysql", feature = "sqlite")),
    allow(unused)
)]

mod backend;
mod bar;
mod batch;
mod blocks;
mod bounds;
mod control;
mod ebb;
mod error;
mod hand;
mod key;
mod look;
mod namespace;
mod options;
mod partition;
mod parts;
mod plan;
mod progress;
mod report;
mod run;
mod scan;
mod session;
mod settle;
mod sql;
mod sweep;
mod table;
mod tally;
mod trail;
mod work;

#[cfg(feature = "mysql")]
mod mysql;
#[cfg(feature = "postgres")]
mod postgres;
#[cfg(feature = "sqlite")]
mod sqlite;

pub use backend::{PartitionBackend, PartitionConnection};
pub use control::Control;
pub use error::PartitionError;
pub use key::{Key, KeyValue};
pub use options::{Cover, Failures, Pause};
pub use partition::Partition;
pub use progress::Progress;
pub use report::{FailedRow, Outcome, Report};
