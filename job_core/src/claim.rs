use crate::backend::JobBackend;
use crate::job::decode;
use crate::outcome::Outcome;
use crate::{JobConnection, JobError, Status, WorkerRow, again};
use job_db::{Database, Fault, JsonText, transaction_depth};
use serde::Serialize;
use serde::de::DeserializeOwned;

mod complete;
mod release;
mod ticket;

pub(crate) use complete::Completion;
pub(crate) use complete::completed;
pub use complete::{complete_all, discard_all, succeeded};
pub use release::release_all;
pub use ticket::Ticket;

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
        let claimed = again::write_transaction(conn, |conn| C::Db::claim(conn, &request))?;
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

/// The highest id of any job, 0 where there is none. A claim that gave fewer jobs than it might has looked at all up to the
/// id that was the highest before it.
///
/// # Errors
/// What the database says.
pub fn last_id<C: JobConnection>(conn: &mut C) -> Result<i64, JobError> {
    Ok(C::Db::last_id(conn)?)
}

/// Claims jobs, in the order of their ids, in one short transaction. It is for a session at READ COMMITTED, such as
/// [`Database::prepare_session`](crate::Database::prepare_session) makes; [`Job::find_new_job`](crate::Job::find_new_job)
/// serves on any.
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
    claim_inside(conn, request)
}

/// From how many jobs on claims should be made [in turn](claim_in_turn).
const IN_TURN: i64 = 100;

/// As [`claim`], but claims of many jobs of one lane are made one after the other, where the database can order them so: side
/// by side each would walk over all that the others have locked. `None` where the turn does not come soon, as when a process
/// was stopped in the middle of its own.
///
/// # Errors
/// As [`claim`].
#[doc(hidden)]
pub fn claim_in_turn<C: JobConnection>(
    conn: &mut C,
    request: &ClaimRequest<'_>,
) -> Result<Option<Vec<ClaimedJob>>, JobError> {
    if request.limit < IN_TURN || !C::Db::CLAIMS_IN_TURN || transaction_depth(conn) > 0 {
        return claim(conn, request).map(Some);
    }
    let mut has_turn = false;
    let claimed = conn.transaction(|conn| {
        C::Db::take_turn(conn, request)?;
        has_turn = true;
        C::Db::claim_many(conn, request)
    });
    match claimed {
        Err(error) if !has_turn && C::Db::fault(&error) == Fault::Contended => Ok(None),
        claimed => {
            let mut jobs = claimed?;
            jobs.sort_unstable_by_key(|job| job.ticket.job_id);
            Ok(Some(jobs))
        }
    }
}

/// Claims jobs of the first of the [`lanes`], all in one statement, where the database can: the shortest way to a job that
/// has just come. It claims nothing where the database cannot, and where the first lane has no job of these kinds; then look
/// at each lane with [`claim`].
///
/// # Errors
/// As [`claim`].
pub fn claim_first<C: JobConnection>(
    conn: &mut C,
    worker: i64,
    queues: &[String],
    kinds: &[String],
    limit: i64,
) -> Result<Vec<ClaimedJob>, JobError> {
    if transaction_depth(conn) > 0 {
        return Err(JobError::InTransaction);
    }
    if limit <= 0 {
        return Ok(Vec::new());
    }
    let mut jobs = again::run(conn, |conn| {
        C::Db::claim_first(conn, worker, queues, kinds, limit)
    })?;
    jobs.sort_unstable_by_key(|job| job.ticket.job_id);
    Ok(jobs)
}

/// As [`claim`], inside a transaction that does nothing else and is committed before the jobs are performed: for a worker
/// behind a proxy that pools transactions, where a statement and its preparation must not be torn apart.
///
/// # Errors
/// An error of the database.
#[doc(hidden)]
pub fn claim_inside<C: JobConnection>(
    conn: &mut C,
    request: &ClaimRequest<'_>,
) -> Result<Vec<ClaimedJob>, JobError> {
    if request.limit <= 0 {
        return Ok(Vec::new());
    }
    let mut jobs = again::run(conn, |conn| C::Db::claim(conn, request))?;
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
