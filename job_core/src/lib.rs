//! Jobs for Diesel apps: define a kind of job, enqueue it in your own transaction, find it, change it. The worker that
//! performs them is in the crate `job_worker`.
//!
//! - [`Perform`] is a kind of job, [`PerformAsync`] one that mostly waits for others; [`NewJob`] one with options that is not enqueued yet.
//! - [`Job`] is one in the database: found, listed, counted, cancelled, discarded, retried. A [`Status`] is a table.
//! - [`Run`], or [`RunAsync`], is one attempt, as the job sees it; [`Run::transaction`] makes its effect exactly once.
//! - [`WorkerRow`], [`Job::find_new_job`], [`claim()`], [`complete_all`] and [`housekeeping`] are what a worker is made of.
//! - [`limits`] says how long and how many.
//! - With the feature `diesel_async` each verb that an app needs has a twin for that crate's connections: `enqueue_async`,
//!   `Job::find_async` … The module `asynchronous` has a chapter on it.
//!
//! Every verb takes the caller's connection. Outside a transaction it makes one of its own and runs it again, a few times,
//! where another transaction stood in its way. Inside one it is a part of it and lives or dies with it; a serialization
//! failure or a deadlock then is the caller's, who runs the whole transaction again, which SERIALIZABLE makes a habit. Times
//! are UTC and come from the database's clock.
//!
//! This crate starts no thread and never sleeps.

// Without a database there is nothing to use it with. What the compiler says of the app comes first then.
#![cfg_attr(
    not(any(feature = "postgres", feature = "mysql", feature = "sqlite")),
    allow(unused)
)]

mod again;
#[cfg(feature = "diesel_async")]
#[allow(clippy::manual_async_fn)] // An `async fn` does not say that its future is `Send`.
pub mod asynchronous;
mod backend;
pub mod backoff;
mod claim;
mod error;
pub mod housekeeping;
mod job;
pub mod limits;
mod new_job;
pub mod notify;
mod outcome;
mod perform;
mod perform_async;
mod run;
mod run_async;
pub mod schema;
mod status;
mod verbs;
mod worker_row;

#[cfg(feature = "diesel_async")]
pub use asynchronous::AsyncJobConnection;
pub use backend::{JobBackend, JobConnection};
pub use claim::{
    ClaimRequest, ClaimedJob, Ticket, claim, claim_first, claim_in_turn, claim_inside, complete_all,
    discard_all, lanes, last_id, release_all, succeeded,
};
pub use error::{EnqueueError, JobError};
pub use job::{Counts, Failure, Job, JobFilter};
#[doc(hidden)] // for the other crates here
pub use job_db::without_secrets;
pub use job_db::{
    CopyError, Database, Fault, JsonText, MigrateError, copy_migrations, migrate, now, prepare_connection,
    schema_version,
};
pub use new_job::{IntoNewJob, NewJob, OnRuntime, OnThread};
pub use outcome::{Outcome, When, cancel, fail_for_good, snooze, snooze_until};
pub use perform::Perform;
pub use perform_async::PerformAsync;
pub use run::{Connections, Run};
pub use run_async::{AsyncConnections, BoxFuture, RunAsync, WorkWithConnection};
pub use status::Status;
pub use worker_row::WorkerRow;
