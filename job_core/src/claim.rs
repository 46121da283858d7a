use crate::backend::{Ending, JobBackend};
use crate::job::decode;
use crate::outcome::{Outcome, When};
use crate::{JobConnection, JobError, Status, WorkerRow, limits};
use chrono::{DateTime, Utc};
use job_db::{Database, JsonText, transaction_depth};
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::time::Duration;

/// What to claim: jobs of one queue and priority, of kinds that the worker has, from the cursor on.
#[derive(Clone, Copy, Debug)]
pub struct ClaimRequest<'a> {
    /// [`WorkerRow::id`]. A worker without a row gets no jobs.
    pub worker: i64,
    /// The queue.
    pub queue: &'a str,
    /// The priority.
    pub priority: i32,
    /// Only jobs with a higher id. A cursor keeps a claim from walking over what is dead or not ours; since ids become
    /// visible out of order, go back to 0 now and then.
    pub after: i64,
    /// The kinds that the worker can perform.
    pub kinds: &'a [String],
    /// At most so many.
    pub limit: i64,
}

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

/// A job that this worker has claimed and is to perform.
#[derive(Clone, Debug)]
pub struct ClaimedJob {
    /// The job's kind.
    pub kind: String,
    /// Its arguments, not decoded yet.
    pub args: JsonText,
    /// The right to record its outcome.
    pub ticket: Ticket,
}

pub(crate) fn find_new_job<C: JobConnection>(
    conn: &mut C,
    worker: &WorkerRow,
) -> Result<Option<ClaimedJob>, JobError> {
    if transaction_depth(conn) > 0 {
        return Err(JobError::InTransaction);
    }
    for (queue, priority) in lanes(conn, &worker.queues)? {
        let request = ClaimRequest {
            worker: worker.id,
            queue: &queue,
            priority,
            after: 0,
            kinds: &worker.kinds,
            limit: 1,
        };
        let claimed = C::Db::write_transaction(conn, |conn| C::Db::claim(conn, &request))?;
        if let Some(job) = claimed.into_iter().next() {
            return Ok(Some(job));
        }
    }
    Ok(None)
}

/// The queues and priorities that have new jobs: queues in the order given, priorities the lowest first.
///
/// # Errors
/// What the database says.
pub fn lanes<C: JobConnection>(conn: &mut C, queues: &[String]) -> Result<Vec<(String, i32)>, JobError> {
    Ok(C::Db::lanes(conn, queues)?)
}

/// Claims jobs, in the order of their ids, in one short transaction.
///
/// # Errors
/// [`JobError::InTransaction`], or an error of the database.
pub fn claim<C: JobConnection>(
    conn: &mut C,
    request: &ClaimRequest<'_>,
) -> Result<Vec<ClaimedJob>, JobError> {
    if transaction_depth(conn) > 0 {
        return Err(JobError::InTransaction);
    }
    let mut jobs = C::Db::claim(conn, request)?;
    jobs.sort_unstable_by_key(|job| job.ticket.job_id);
    Ok(jobs)
}

impl ClaimedJob {
    /// The job's id.
    pub fn id(&self) -> i64 {
        self.ticket.job_id
    }

    /// The number of charged attempts, this one included.
    pub fn attempt(&self) -> i32 {
        self.ticket.charged()
    }

    /// The job's arguments.
    ///
    /// # Errors
    /// [`JobError::Decode`] where they are of another type.
    pub fn args<T: DeserializeOwned>(&self) -> Result<T, JobError> {
        decode(self.id(), "arguments", &self.args.0)
    }

    /// Records that the job was performed, with its result. Where the result cannot be kept (too long, not JSON, a NUL
    /// that the database does not take), the job ends as failed with that reason.
    ///
    /// # Errors
    /// [`JobError::Lost`] where the job is no longer this worker's, or an error of the database.
    pub fn complete<C: JobConnection>(
        &self,
        conn: &mut C,
        output: &impl Serialize,
    ) -> Result<Status, JobError> {
        self.ticket.record(conn, &completed::<C>(output))
    }

    /// Records a failed attempt. While attempts are left the job is scheduled again, with exponential backoff; else it
    /// ends as failed.
    ///
    /// # Errors
    /// As [`complete`](Self::complete).
    pub fn fail<C: JobConnection>(&self, conn: &mut C, error: &str) -> Result<Status, JobError> {
        let outcome = Outcome::Failed {
            error: error.to_owned(),
            delay: crate::backoff::exponential(self.attempt()),
        };
        self.ticket.record(conn, &outcome)
    }

    /// Hands the job back unstarted; the attempt is not charged.
    ///
    /// # Errors
    /// As [`complete`](Self::complete).
    pub fn release<C: JobConnection>(&self, conn: &mut C) -> Result<(), JobError> {
        match release_all(conn, std::slice::from_ref(&self.ticket))? {
            1 => Ok(()),
            _ => Err(JobError::Lost(self.id())),
        }
    }
}

/// The outcome of a success: completed, or failed for good where the result cannot be kept.
pub fn completed<C: JobConnection>(output: &impl Serialize) -> Outcome {
    let json = match serde_json::to_string(output) {
        Ok(json) => json,
        Err(error) => {
            return Outcome::FailedForGood(format!("the result cannot be written as JSON: {error}"));
        }
    };
    if json.len() > limits::MAX_RESULT_BYTES {
        return Outcome::FailedForGood(format!(
            "the result is {} bytes of JSON and may be {}: keep it in a table or a file and give its key",
            json.len(),
            limits::MAX_RESULT_BYTES
        ));
    }
    if !<C::Db as Database>::JSON_HOLDS_NUL && limits::json_has_nul(&json) {
        return Outcome::FailedForGood(format!(
            "the result holds the character NUL, which {} cannot keep in JSON",
            <C::Db as Database>::NAME
        ));
    }
    Outcome::Completed((json != "null").then_some(JsonText(json)))
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
        if let Outcome::Recorded = outcome {
            return Ok(Status::Completed);
        }
        C::Db::write_transaction(conn, |conn| self.record_inside(conn, outcome))
    }

    /// Records one outcome inside a transaction of ours.
    pub(crate) fn record_inside<C: JobConnection>(
        &self,
        conn: &mut C,
        outcome: &Outcome,
    ) -> Result<Status, JobError> {
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

/// Records many completions at once, each with its result, and gives the ids of those that were recorded, now or by an
/// earlier call whose answer was lost. The others are no longer this worker's.
///
/// # Errors
/// What the database says; then none of them, or some, were recorded: call again with the same.
pub fn complete_all<C: JobConnection>(
    conn: &mut C,
    worker: i64,
    completions: &[(Ticket, Option<JsonText>)],
) -> Result<Vec<i64>, JobError> {
    let mut recorded = C::Db::complete(conn, worker, completions)?;
    if recorded.len() < completions.len() {
        for (ticket, _) in completions {
            if !recorded.contains(&ticket.job_id) && C::Db::was_completed_by(conn, ticket)? {
                recorded.push(ticket.job_id);
            }
        }
    }
    Ok(recorded)
}

/// Hands jobs back unstarted, uncharged, and gives how many were still ours.
///
/// # Errors
/// What the database says; then none was handed back.
pub fn release_all<C: JobConnection>(conn: &mut C, tickets: &[Ticket]) -> Result<usize, JobError> {
    if tickets.is_empty() {
        return Ok(0);
    }
    let released = C::Db::write_transaction(conn, |conn| {
        let mut released = 0;
        for ticket in tickets {
            if C::Db::delete_processing(conn, ticket)? == 1 {
                C::Db::insert_new(conn, ticket.job_id, ticket.attempts, ticket.uncharged + 1)?;
                released += 1;
            }
        }
        diesel::QueryResult::Ok(released)
    })?;
    crate::notify::wake(conn);
    Ok(released)
}
