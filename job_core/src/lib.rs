//! Jobs for Diesel apps: define a kind of job, enqueue it in your own transaction, find it, change it. The worker that
//! performs them is in the crate `job_worker`.
//!
//! - [`Perform`] is a kind of job; [`NewJob`] one with options that is not enqueued yet.
//! - [`Job`] is one in the database: found, listed, counted, cancelled, discarded, retried. A [`Status`] is a table.
//! - [`Run`] is one attempt, as the job sees it; [`Run::transaction`] makes its effect exactly once.
//! - [`WorkerRow`], [`Job::find_new_job`], [`claim()`], [`complete_all`] and [`housekeeping`] are what a worker is made of.
//! - [`limits`] says how long and how many.
//!
//! Every verb takes the caller's connection. Outside a transaction it makes one of its own and runs it again, a few times,
//! where another transaction stood in its way. Inside one it is a part of it and lives or dies with it; a serialization
//! failure or a deadlock then is the caller's, who runs the whole transaction again, which SERIALIZABLE makes a habit. Times
//! are UTC and come from the database's clock.
//!
//! This crate starts no thread and never sleeps.

mod again;
mod backend;
pub mod backoff;
mod claim;
mod enqueue;
mod error;
pub mod housekeeping;
mod job;
pub mod limits;
mod new_job;
pub mod notify;
mod outcome;
mod perform;
mod run;
pub mod schema;
mod status;
mod worker_row;

pub use backend::{JobBackend, JobConnection};
pub use claim::{
    ClaimRequest, ClaimedJob, Ticket, claim, claim_inside, complete_all, completed, lanes, last_id,
    release_all,
};
pub use error::{EnqueueError, JobError};
pub use job::{Counts, Failure, Job, JobFilter};
#[doc(hidden)] // for the other crates here
pub use job_db::without_secrets;
pub use job_db::{
    CopyError, Database, Fault, JsonText, MigrateError, copy_migrations, migrate, now, prepare_connection,
    schema_version,
};
pub use new_job::NewJob;
pub use outcome::{Outcome, When, cancel, fail_for_good, snooze, snooze_until};
pub use perform::Perform;
pub use run::{Connections, Run};
pub use status::Status;
pub use worker_row::WorkerRow;
