use crate::backend::{Ending, JobBackend};
use crate::outcome::{Outcome, When};
use crate::{JobConnection, JobError, Status, again, limits};
use chrono::{DateTime, Utc};
use job_db::{Database, Fault, JsonText, savepoint};
use std::time::Duration;

/// The right to record a job's outcome, which this attempt alone has: a transition matches job, worker and attempt.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ticket {
    /// The job.
    pub job_id: i64,
    /// The worker that claimed it.
    pub worker: i64,
    /// The number of this claim among all claims of the job, from 1.
    pub attempts: i32,
    /// How many of them were not charged.
    pub uncharged: i32,
    /// How many attempts may be charged.
    pub max_attempts: i32,
    /// Whether the job holds a unique key, to be freed at its end.
    pub unique: bool,
    /// When it was claimed, by the database's clock.
    pub started_at: DateTime<Utc>,
}

impl Ticket {
    /// How many attempts were charged, this one included.
    pub fn charged(&self) -> i32 {
        self.attempts - self.uncharged
    }

    /// Records one outcome, in a transaction of its own or as a part of the caller's, and gives the job's new status.
    ///
    /// # Errors
    /// [`JobError::Lost`] where the job is no longer this worker's, or an error of the database.
    pub fn record<C: JobConnection>(&self, conn: &mut C, outcome: &Outcome) -> Result<Status, JobError> {
        let recorded = again::write_transaction(conn, |conn| self.record_inside(conn, outcome));
        if let (Err(JobError::Database(error)), Outcome::Completed(Some(result))) = (&recorded, outcome)
            && C::Db::fault(error) == Fault::Other
            && !takes_json(conn, result)?
        {
            let reason = format!(
                "the result cannot be kept by {}: {error}",
                <C::Db as Database>::NAME
            );
            return self.record(conn, &Outcome::FailedForGood(reason));
        }
        recorded
    }

    /// Records an outcome that the database has refused before; where it refuses it again, and not for want of trying, it
    /// records instead, in the same transaction, that the job has failed with that reason. A database that takes nothing at
    /// present takes neither, and that is an error.
    ///
    /// # Errors
    /// As [`record`](Self::record).
    pub fn record_or_fail<C: JobConnection>(
        &self,
        conn: &mut C,
        outcome: &Outcome,
    ) -> Result<Status, JobError> {
        again::write_transaction(conn, |conn| {
            match savepoint(conn, |conn| self.record_inside(conn, outcome)) {
                Err(JobError::Database(error)) if C::Db::fault(&error) == Fault::Other => {
                    let reason = format!("its outcome could not be recorded: {error}");
                    self.record_inside(conn, &Outcome::FailedForGood(reason))
                }
                recorded => recorded,
            }
        })
    }

    /// Records one outcome inside a transaction of ours.
    pub(crate) fn record_inside<C: JobConnection>(
        &self,
        conn: &mut C,
        outcome: &Outcome,
    ) -> Result<Status, JobError> {
        if let Outcome::Recorded = outcome {
            return Ok(Status::Completed);
        }
        if C::Db::delete_processing(conn, self)? == 0 {
            return Err(JobError::Lost(self.job_id));
        }
        Ok(self.put(conn, outcome)?)
    }

    /// Puts the job, which stands in no status table now, where the outcome says.
    fn put<C: JobConnection>(&self, conn: &mut C, outcome: &Outcome) -> diesel::QueryResult<Status> {
        match outcome {
            Outcome::Recorded => Ok(Status::Completed),
            Outcome::Completed(result) => self.finish(conn, Status::Completed, result.as_ref(), None),
            Outcome::Cancelled(reason) => {
                self.finish(conn, Status::Cancelled, None, Some(&limits::clean_error(reason)))
            }
            Outcome::Discarded => {
                if self.unique {
                    C::Db::free_key(conn, self.job_id)?;
                }
                C::Db::delete_facts(conn, &[self.job_id])?;
                Ok(Status::Completed)
            }
            Outcome::FailedForGood(error) => self.fail(conn, error, None),
            Outcome::Failed { error, delay } => self.fail(
                conn,
                error,
                (self.charged() < self.max_attempts).then_some(*delay),
            ),
            Outcome::Snoozed(_) if self.uncharged >= limits::MAX_UNCHARGED => {
                let delay =
                    (self.charged() < self.max_attempts).then(|| crate::backoff::exponential(self.charged()));
                self.fail(conn, "it snoozed too often: this attempt is charged", delay)
            }
            Outcome::Snoozed(when) => {
                C::Db::insert_scheduled(conn, self.job_id, self.attempts, self.uncharged + 1, *when)?;
                Ok(Status::Scheduled)
            }
        }
    }

    fn fail<C: JobConnection>(
        &self,
        conn: &mut C,
        error: &str,
        retry_in: Option<Duration>,
    ) -> diesel::QueryResult<Status> {
        let error = limits::clean_error(error);
        C::Db::insert_failure(conn, self.job_id, self.attempts, &error)?;
        match retry_in {
            None => self.finish(conn, Status::Failed, None, Some(&error)),
            Some(delay) => {
                C::Db::insert_scheduled(conn, self.job_id, self.attempts, self.uncharged, When::In(delay))?;
                Ok(Status::Scheduled)
            }
        }
    }

    fn finish<C: JobConnection>(
        &self,
        conn: &mut C,
        status: Status,
        result: Option<&JsonText>,
        error: Option<&str>,
    ) -> diesel::QueryResult<Status> {
        C::Db::insert_finished(
            conn,
            &Ending {
                job_id: self.job_id,
                status,
                attempts: self.attempts,
                uncharged: self.uncharged,
                started_at: Some(self.started_at),
                worker: Some(self.worker),
                result,
                error,
            },
        )?;
        if self.unique {
            C::Db::free_key(conn, self.job_id)?;
        }
        Ok(status)
    }
}

/// Whether the database takes this document, asked in a savepoint where a transaction is open.
fn takes_json<C: JobConnection>(conn: &mut C, json: &JsonText) -> Result<bool, JobError> {
    match conn.transaction(|conn| C::Db::read_json(conn, json)) {
        Ok(()) => Ok(true),
        Err(error) if C::Db::fault(&error) == Fault::Other => Ok(false),
        Err(error) => Err(error.into()),
    }
}
