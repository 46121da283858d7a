//! The worker: a process that claims jobs, performs them and records what came of them, until it is told to stop.
//!
//! ```
//! # #[cfg(feature = "sqlite")] {
//! use diesel::prelude::*;
//! use diesel::r2d2::ConnectionManager;
//! use job_core::{Job, Perform, Run, Status};
//! use job_worker::Worker;
//! use serde::{Deserialize, Serialize};
//!
//! #[derive(Serialize, Deserialize)]
//! struct CountWords { text: String }
//!
//! impl Perform for CountWords {
//!     const KIND: &'static str = "count_words";
//!     type Context = ();
//!     type Output = usize;
//!
//!     fn perform(&self, _run: &Run<'_, ()>) -> anyhow::Result<usize> {
//!         Ok(self.text.split_whitespace().count())
//!     }
//! }
//!
//! # let folder = std::env::temp_dir().join(format!("gatun-doc-{}", std::process::id()));
//! # std::fs::create_dir_all(&folder).unwrap();
//! # let url = folder.join("jobs.sqlite3").to_str().unwrap().to_owned();
//! let conn = &mut SqliteConnection::establish(&url).unwrap();
//! job_core::migrate(conn).unwrap();
//! let job = CountWords { text: "to be or not to be".into() }.enqueue(conn).unwrap();
//!
//! Worker::new(ConnectionManager::<SqliteConnection>::new(&url), ())
//!     .register::<CountWords>()
//!     .threads(2)
//!     .run_until_idle() // in a worker's binary: run()
//!     .unwrap();
//!
//! let job = Job::find(conn, job.id).unwrap();
//! assert_eq!(job.status(), Status::Completed);
//! assert_eq!(job.output::<usize>().unwrap(), 6);
//! # std::fs::remove_dir_all(&folder).unwrap();
//! # }
//! ```
//!
//! # Async jobs
//!
//! With the feature `tokio`, a worker performs [`PerformAsync`](job_core::PerformAsync) too: futures on a runtime with a few
//! threads, for jobs that do little but wait for others.
//!
//! ```
//! # #[cfg(all(feature = "sqlite", feature = "tokio"))] {
//! use diesel::prelude::*;
//! use diesel::r2d2::ConnectionManager;
//! use job_core::{Job, PerformAsync, RunAsync};
//! use job_worker::Worker;
//! use serde::{Deserialize, Serialize};
//! use std::time::Duration;
//!
//! #[derive(Serialize, Deserialize)]
//! struct CallWebhook { number: i64 }
//!
//! impl PerformAsync for CallWebhook {
//!     const KIND: &'static str = "call_webhook";
//!     const TIMEOUT: Option<Duration> = Some(Duration::from_secs(30));
//!     type Context = ();
//!     type Output = i64;
//!
//!     async fn perform(&self, run: &RunAsync<()>) -> anyhow::Result<i64> {
//!         tokio::time::sleep(Duration::from_millis(50)).await; // an answer from far away
//!         let number = self.number;
//!         // Written together with the job's completion, so exactly once; the closure runs on a thread where it may wait.
//!         run.transaction(move |conn: &mut SqliteConnection| {
//!             diesel::sql_query("INSERT INTO answers VALUES (?)")
//!                 .bind::<diesel::sql_types::BigInt, _>(number)
//!                 .execute(conn)?;
//!             Ok(number)
//!         })
//!         .await
//!     }
//! }
//!
//! # let folder = std::env::temp_dir().join(format!("gatun-doc-async-{}", std::process::id()));
//! # std::fs::create_dir_all(&folder).unwrap();
//! # let url = folder.join("jobs.sqlite3").to_str().unwrap().to_owned();
//! let conn = &mut SqliteConnection::establish(&url).unwrap();
//! job_core::migrate(conn).unwrap();
//! job_core::prepare_connection(conn).unwrap();
//! diesel::sql_query("CREATE TABLE answers (number BIGINT)").execute(conn).unwrap();
//! Job::enqueue_all(conn, (0..100).map(|number| CallWebhook { number })).unwrap();
//!
//! let report = Worker::new(ConnectionManager::<SqliteConnection>::new(&url), ())
//!     .register_async::<CallWebhook>()
//!     .async_jobs(100) // at once
//!     .run_until_idle()
//!     .unwrap();
//! assert_eq!(report.completed, 100);
//! # std::fs::remove_dir_all(&folder).unwrap();
//! # }
//! ```
//!
//! - **Room.** `async_jobs` says how many at once, 500 if not said. A worker may have jobs of both sorts: those on threads
//!   and those on the runtime have their room and their fetcher each, and do not wait for each other.
//! - **Threads.** The worker has a runtime of its own, with as many threads as cores, 4 at most (`async_threads`), or uses
//!   one of the app's (`runtime`). A job that computes, or calls what blocks, holds up all others on its thread: such work
//!   belongs in `spawn_blocking`, or in a [`Perform`](job_core::Perform).
//! - **Connections.** `run.connection` and `run.transaction` take a closure to a thread where it may wait. As many run at
//!   once as the pool has connections, 4 if not said; the other jobs wait for their turn without a thread.
//! - **Timeout.** At a kind's `TIMEOUT` the future is dropped and the attempt has failed, "timed out after 30s"; it is
//!   charged, and tried again as after any failure.
//! - **Cancellation.** Once in a heartbeat the worker asks, by one statement for all of them, which jobs are still its own.
//!   The futures of those that were cancelled or rescued are dropped, and counted as refused in the [`Report`].
//! - **Stop.** `run.is_stopping()` and `run.stopping().await` tell a job. What has not ended within the grace time is dropped
//!   and left to rescue. A future that never reaches an `.await` cannot be dropped; the stop does not wait for it.
//! - **Once begun**, a closure of `run.connection` or `run.transaction` comes to its end, even if its future was dropped. The
//!   fence lets either its transaction stand or the other outcome, never both.
//!
//! # What a worker is made of
//!
//! One thread fetches, and another for async jobs; one records, and another what the database refuses, or, on PostgreSQL,
//! somebody's lock holds up; one beats, one keeps house, one listens where the database can notify; as many as you say
//! perform. This crate holds no SQL: what it does to the database are the verbs of `job_core`.

// Without a database there is nothing to use it with. What the compiler says of the app comes first then.
#![cfg_attr(
    not(any(feature = "postgres", feature = "mysql", feature = "sqlite")),
    allow(unused)
)]

mod claimer;
mod completer;
mod connections;
mod crew;
mod error;
mod fetcher;
mod follow_up;
#[cfg(feature = "tokio")]
mod futures;
#[cfg(not(feature = "tokio"))]
#[path = "no_futures.rs"]
mod futures;
mod hands;
mod heart;
mod held;
mod housekeeper;
mod lanes;
mod listener;
mod options;
pub mod parallel;
mod performer;
mod registry;
mod report;
mod session;
mod signals;
mod silence;
mod socket;
mod stop;
mod successes;
mod supply;
mod team;
mod waiting;
mod window;
mod worker;

pub use error::WorkerError;
/// All rows of a big table, without the job queue: the crate `job_partition`, in which all that belongs to [`Partition`]
/// stands.
pub use job_partition as partition;
pub use job_partition::Partition;
pub use parallel::InParallel;
pub use report::Report;
pub use stop::StopHandle;
pub use worker::Worker;
