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
//! One thread fetches, one records, one beats, one keeps house, one listens where the database can notify; as many as you
//! say perform. This crate holds no SQL: what it does to the database are the verbs of `job_core`.

mod completer;
mod connections;
mod crew;
mod error;
mod fetcher;
mod follow_up;
mod hands;
mod heart;
mod housekeeper;
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
mod team;
mod window;
mod worker;

pub use error::WorkerError;
/// All rows of a big table, without the job queue; what belongs to [`Partition`] stands in this module.
pub use job_partition as partition;
pub use job_partition::Partition;
pub use parallel::InParallel;
pub use report::Report;
pub use stop::StopHandle;
pub use worker::Worker;
