//! What some worker must do now and then for all: promote what is due, rescue what dead workers held, prune what is old.
//! The worker of `job_worker` does it; a program that claims by hand calls these.
//!
//! ```
//! # #[cfg(feature = "sqlite")] {
//! # use diesel::prelude::*;
//! use job_core::{Status, housekeeping};
//! use std::time::Duration;
//! # let conn = &mut SqliteConnection::establish(":memory:").unwrap();
//! # job_core::migrate(conn).unwrap();
//! // Every second or so, and when `next_due` has passed.
//! housekeeping::promote(conn, 500).unwrap();
//!
//! // Every few seconds: who has not beaten for a minute is dead, and its jobs go to others.
//! let minute = Duration::from_secs(60);
//! for worker in housekeeping::silent_workers(conn, minute).unwrap() {
//!     housekeeping::declare_dead(conn, worker, minute).unwrap();
//! }
//! housekeeping::rescue(conn, 500).unwrap();
//!
//! // Now and then: what completed more than a week ago, in batches, so that no statement is long.
//! let mut after = 0;
//! loop {
//!     let week = Duration::from_secs(7 * 86_400);
//!     let pruned = housekeeping::prune(conn, Status::Completed, week, after, 1_000).unwrap();
//!     match pruned.next {
//!         Some(next) => after = next,
//!         None => break,
//!     }
//! }
//! # }
//! ```

use crate::backend::JobBackend;
use crate::new_job::micros;
use crate::outcome::Outcome;
use crate::{Fault, JobConnection, JobError, Status, Ticket, again, backoff};
use chrono::{DateTime, Utc};
use job_db::Database;
use std::time::Duration;

/// Moves up to `limit` jobs that are due from `jobs_scheduled` to `jobs_new`, and gives how many it moved.
///
/// # Errors
/// What the database says.
pub fn promote<C: JobConnection>(conn: &mut C, limit: i64) -> Result<usize, JobError> {
    let moved = again::run(conn, |conn| C::Db::promote(conn, limit.max(0)))?;
    if moved > 0 {
        crate::notify::wake(conn);
    }
    Ok(moved)
}

/// How long until the next scheduled job is due; zero where one is overdue, `None` where none is scheduled.
///
/// # Errors
/// What the database says.
pub fn next_due<C: JobConnection>(conn: &mut C) -> Result<Option<Duration>, JobError> {
    let (run_at, now) = C::Db::next_run_at(conn)?;
    Ok(until(run_at, now))
}

/// What there is to do, as [`chores`] saw it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Chores {
    /// As [`next_due`] gives it.
    pub next_due: Option<Duration>,
    /// Whether there are [`silent_workers`].
    pub silent: bool,
    /// Whether there is something to [`rescue`].
    pub orphans: bool,
}

/// Looks, in one statement, at what [`next_due`], [`silent_workers`] and [`rescue`] would find, which is nearly always
/// nothing. `age` is as for [`silent_workers`].
///
/// # Errors
/// What the database says.
pub fn chores<C: JobConnection>(conn: &mut C, age: Duration) -> Result<Chores, JobError> {
    Ok(C::Db::chores(conn, micros(age))?)
}

/// How long it is until then.
pub(crate) fn until(run_at: Option<DateTime<Utc>>, now: DateTime<Utc>) -> Option<Duration> {
    run_at.map(|run_at| (run_at - now).to_std().unwrap_or_default())
}

/// The workers that have not beaten for `age`, by the database's clock; what is longer than 1000 years is cut to that.
///
/// # Errors
/// What the database says.
pub fn silent_workers<C: JobConnection>(conn: &mut C, age: Duration) -> Result<Vec<i64>, JobError> {
    Ok(C::Db::silent_workers(conn, micros(age))?)
}

/// Declares a worker dead, if it has still not beaten for `age`: from now on it can claim nothing, and
/// [`rescue`] takes its jobs back. Gives whether it did so.
///
/// # Errors
/// What the database says.
pub fn declare_dead<C: JobConnection>(conn: &mut C, worker: i64, age: Duration) -> Result<bool, JobError> {
    Ok(C::Db::delete_silent_worker(conn, worker, micros(age))? == 1)
}

/// Takes back up to `limit` jobs whose worker has no row: their attempt failed and stays charged; they are scheduled again
/// with backoff, or end as failed where no attempt is left. Gives their ids.
///
/// # Errors
/// What the database says.
pub fn rescue<C: JobConnection>(conn: &mut C, limit: i64) -> Result<Vec<i64>, JobError> {
    let limit = limit.max(0);
    // Nearly always there is none, and no transaction is needed.
    if C::Db::orphans(conn, limit)?.is_empty() {
        return Ok(Vec::new());
    }
    again::write_transaction(conn, |conn| {
        let orphans = C::Db::orphans(conn, limit)?;
        let orphans = C::Db::lock_orphans(conn, orphans)?;
        let mut rescued = Vec::with_capacity(orphans.len());
        for ticket in &orphans {
            let outcome = Outcome::Failed {
                error: format!(
                    "worker {} died, or lost its database, while it held the job",
                    ticket.worker
                ),
                delay: backoff::exponential(ticket.charged()),
            };
            // Another worker may rescue at the same time; the fence lets one of us have it.
            match ticket.record_inside(conn, &outcome) {
                Ok(_) => rescued.push(ticket.job_id),
                Err(JobError::Lost(_)) => {}
                Err(error) => return Err(error),
            }
        }
        Ok(rescued)
    })
}

/// The jobs that the database says a worker holds. One that the worker knows nothing of was claimed by a statement whose
/// answer was lost.
///
/// # Errors
/// What the database says.
pub fn held_by<C: JobConnection>(conn: &mut C, worker: i64) -> Result<Vec<Ticket>, JobError> {
    Ok(C::Db::held_by(conn, worker)?)
}

/// How far one call of [`prune`] came.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pruned {
    /// How many jobs it removed.
    pub removed: usize,
    /// Where to go on: the highest id that it looked at; `None` where it came to the end.
    pub next: Option<i64>,
}

/// Removes, among the next `limit` jobs with this end and an id above `after`, those that ended longer than `age` ago, with
/// all their history.
///
/// # Errors
/// What the database says.
pub fn prune<C: JobConnection>(
    conn: &mut C,
    status: Status,
    age: Duration,
    after: i64,
    limit: i64,
) -> Result<Pruned, JobError> {
    let looked = C::Db::old_finished(conn, status, micros(age), after, limit.max(0))?;
    let old: Vec<i64> = looked.iter().filter(|(_, old)| *old).map(|(id, _)| *id).collect();
    let full = looked.len() as i64 >= limit;
    let next = looked.last().filter(|_| full).map(|(id, _)| *id);
    let removed = if old.is_empty() {
        0
    } else {
        delete_finished(conn, &old)?
    };
    Ok(Pruned { removed, next })
}

/// Deletes them together, or, where a foreign key of the app's keeps one, one by one.
fn delete_finished<C: JobConnection>(conn: &mut C, ids: &[i64]) -> Result<usize, JobError> {
    let mut delete = |ids: &[i64]| again::write_transaction(conn, |conn| C::Db::delete_finished(conn, ids));
    match delete(ids) {
        Err(error) if C::Db::fault(&error) == Fault::Other && ids.len() > 1 => {
            let (mut deleted, mut kept) = (0, 0);
            for &id in ids {
                match delete(&[id]) {
                    Ok(number) => deleted += number,
                    Err(error) if C::Db::fault(&error) == Fault::Other => kept += 1,
                    Err(error) => return Err(error.into()),
                }
            }
            log::warn!(
                "gatun: {kept} of {} old jobs cannot be pruned: {error}",
                ids.len()
            );
            Ok(deleted)
        }
        deleted => Ok(deleted?),
    }
}
