//! The database seam: what differs between the databases about jobs. Users see only [`JobConnection`].

use crate::claim::{ClaimRequest, ClaimedJob, Completion, Ticket};
use crate::housekeeping::Chores;
use crate::job::JobFilter;
use crate::new_job::NewRow;
use crate::outcome::When;
use crate::{Failure, Job, JobError, Status, WorkerRow};
use chrono::{DateTime, Utc};
use diesel::QueryResult;
use diesel::connection::LoadConnection;
use job_db::{Database, DbConnection, JsonText};

// First the modules that give macros to the others.
#[macro_use]
mod verbs;
#[macro_use]
mod portable;
#[cfg(any(feature = "mysql", feature = "sqlite"))]
#[macro_use]
mod row_by_row;

#[cfg(feature = "diesel_async")]
pub(crate) mod asynchronous;
#[cfg(feature = "mysql")]
mod mysql;
#[cfg(feature = "postgres")]
mod postgres;
mod row;
#[cfg(feature = "sqlite")]
mod sqlite;

/// Any Diesel connection to a database that Gatun knows. Implemented for every such connection; there is nothing to
/// implement.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a Diesel connection that the job queue can use",
    label = "pass a `&mut` PgConnection, MysqlConnection, SqliteConnection or an r2d2 PooledConnection of one",
    note = "with a pool call `pool.get()?` first; and enable job_core's feature `postgres`, `mysql` or `sqlite`",
    note = "for a connection of diesel_async use `enqueue_async`, `find_async` … (job_core's feature `diesel_async`)"
)]
pub trait JobConnection: DbConnection<Db: JobBackend> {}

impl<C> JobConnection for C where C: DbConnection<Db: JobBackend> {}

/// The verbs of the queue on one database. Sealed through [`Database`]; its methods are for this crate.
#[doc(hidden)]
#[diagnostic::on_unimplemented(
    message = "this build of job_core does not know `{Self}`",
    note = "enable job_core's feature `sqlite`, `postgres` or `mysql`, whichever the connection is of"
)]
pub trait JobBackend: Database {
    /// Whether one statement enqueues many jobs, whatever their options.
    const ENQUEUES_IN_ONE_STATEMENT: bool;
    /// How many jobs one statement enqueues.
    const MAX_ROWS_PER_STATEMENT: usize;
    /// How many bytes of arguments one statement enqueues.
    const MAX_BYTES_PER_STATEMENT: usize;
    /// Whether the database can wake workers.
    const CAN_NOTIFY: bool;
    /// Whether those who claim many jobs of one lane can take turns.
    const CLAIMS_IN_TURN: bool = false;

    /// Enqueues one job without key and time.
    fn enqueue_plain<C: LoadConnection<Backend = Self>>(conn: &mut C, row: &NewRow) -> QueryResult<Job>;
    /// Enqueues jobs; gives (position, id) of those whose key was free or that have none.
    fn enqueue_many<C: LoadConnection<Backend = Self>>(
        conn: &mut C,
        rows: &[&NewRow],
    ) -> QueryResult<Vec<(usize, i64)>>;
    /// The job that holds a key, as committed or as this transaction wrote it.
    fn key_holder<C: LoadConnection<Backend = Self>>(conn: &mut C, key: &str) -> QueryResult<Option<i64>>;
    /// Takes a free key for a job; waits for a transaction that holds it.
    fn take_key<C: LoadConnection<Backend = Self>>(conn: &mut C, key: &str, job_id: i64)
    -> QueryResult<bool>;
    /// Frees a job's key, if it holds one.
    fn free_key<C: LoadConnection<Backend = Self>>(conn: &mut C, job_id: i64) -> QueryResult<()>;

    fn find<C: LoadConnection<Backend = Self>>(conn: &mut C, id: i64) -> Result<Option<Job>, JobError>;
    /// Finds a job that a snapshot may not show.
    fn find_latest<C: LoadConnection<Backend = Self>>(
        conn: &mut C,
        id: i64,
    ) -> Result<Option<Job>, JobError> {
        Self::find(conn, id)
    }
    fn list<C: LoadConnection<Backend = Self>>(
        conn: &mut C,
        filter: &JobFilter,
    ) -> Result<Vec<Job>, JobError>;
    fn failures<C: LoadConnection<Backend = Self>>(conn: &mut C, id: i64) -> QueryResult<Vec<Failure>>;
    /// (status code, number), a status once or several times.
    fn count<C: LoadConnection<Backend = Self>>(conn: &mut C) -> QueryResult<Vec<(i32, i64)>>;
    fn count_in<C: LoadConnection<Backend = Self>>(conn: &mut C, queue: &str)
    -> QueryResult<Vec<(i32, i64)>>;

    fn lanes<C: LoadConnection<Backend = Self>>(
        conn: &mut C,
        queues: &[String],
    ) -> QueryResult<Vec<(String, i32)>>;
    /// The highest id of any job, 0 where there is none.
    fn last_id<C: LoadConnection<Backend = Self>>(conn: &mut C) -> QueryResult<i64>;
    /// Waits, not for long, for the lane's turn, which ends with the transaction.
    fn take_turn<C: LoadConnection<Backend = Self>>(
        _conn: &mut C,
        _request: &ClaimRequest<'_>,
    ) -> QueryResult<()> {
        Ok(())
    }
    fn claim<C: LoadConnection<Backend = Self>>(
        conn: &mut C,
        request: &ClaimRequest<'_>,
    ) -> QueryResult<Vec<ClaimedJob>>;
    /// Claims from the first lane that has jobs, in one statement where the database can; else claims nothing.
    fn claim_first<C: LoadConnection<Backend = Self>>(
        _conn: &mut C,
        _worker: i64,
        _queues: &[String],
        _kinds: &[String],
        _limit: i64,
    ) -> QueryResult<Vec<ClaimedJob>> {
        Ok(Vec::new())
    }
    /// As [`claim`](Self::claim), for many jobs, in a transaction.
    fn claim_many<C: LoadConnection<Backend = Self>>(
        conn: &mut C,
        request: &ClaimRequest<'_>,
    ) -> QueryResult<Vec<ClaimedJob>> {
        Self::claim(conn, request)
    }
    /// Records completions, at most one of each job, in the order of the jobs; gives the ids of those that were this worker's.
    fn complete<C: LoadConnection<Backend = Self>>(
        conn: &mut C,
        worker: i64,
        completions: &[&Completion],
    ) -> QueryResult<Vec<i64>>;
    /// Hands jobs back to be claimed again, uncharged, in the order of the jobs and at most one ticket for each; gives how many were this worker's.
    fn release<C: LoadConnection<Backend = Self>>(
        conn: &mut C,
        worker: i64,
        tickets: &[&Ticket],
    ) -> QueryResult<usize>;
    /// Deletes jobs that have completed, and all that belongs to them; otherwise as [`complete`](Self::complete).
    fn discard<C: LoadConnection<Backend = Self>>(
        conn: &mut C,
        worker: i64,
        tickets: &[&Ticket],
    ) -> QueryResult<Vec<i64>> {
        Self::write_transaction(conn, |conn| {
            let mut discarded = Vec::with_capacity(tickets.len());
            for ticket in tickets {
                if ticket.worker == worker && Self::delete_processing(conn, ticket)? == 1 {
                    if ticket.unique {
                        Self::free_key(conn, ticket.job_id)?;
                    }
                    discarded.push(ticket.job_id);
                }
            }
            Self::delete_facts(conn, &discarded)?;
            Ok(discarded)
        })
    }
    /// Lets the database read a JSON document, and fails where it does not take it; where it is a text, any will do.
    fn read_json<C: LoadConnection<Backend = Self>>(_conn: &mut C, _json: &JsonText) -> QueryResult<()> {
        Ok(())
    }
    fn was_completed_by<C: LoadConnection<Backend = Self>>(
        conn: &mut C,
        ticket: &Ticket,
    ) -> QueryResult<bool>;
    fn is_processing<C: LoadConnection<Backend = Self>>(conn: &mut C, ticket: &Ticket) -> QueryResult<bool>;
    /// The fence: 1 where the job is still this ticket's, else 0.
    fn delete_processing<C: LoadConnection<Backend = Self>>(
        conn: &mut C,
        ticket: &Ticket,
    ) -> QueryResult<usize>;
    fn insert_failure<C: LoadConnection<Backend = Self>>(
        conn: &mut C,
        job_id: i64,
        attempt: i32,
        error: &str,
    ) -> QueryResult<()>;
    fn insert_finished<C: LoadConnection<Backend = Self>>(conn: &mut C, end: &Ending<'_>) -> QueryResult<()>;
    fn insert_scheduled<C: LoadConnection<Backend = Self>>(
        conn: &mut C,
        job_id: i64,
        attempts: i32,
        uncharged: i32,
        when: When,
    ) -> QueryResult<()>;
    fn insert_new<C: LoadConnection<Backend = Self>>(
        conn: &mut C,
        job_id: i64,
        attempts: i32,
        uncharged: i32,
    ) -> QueryResult<()>;
    /// Deletes the job's row in the status table where it was seen: 1, or 0 where it has moved on.
    fn delete_state<C: LoadConnection<Backend = Self>>(conn: &mut C, job: &Job) -> QueryResult<usize>;
    /// Deletes jobs and their failures.
    fn delete_facts<C: LoadConnection<Backend = Self>>(conn: &mut C, ids: &[i64]) -> QueryResult<()>;

    fn insert_worker<C: LoadConnection<Backend = Self>>(conn: &mut C, row: &WorkerRow) -> QueryResult<()>;
    fn beat<C: LoadConnection<Backend = Self>>(conn: &mut C, id: i64) -> QueryResult<usize>;
    fn delete_worker<C: LoadConnection<Backend = Self>>(conn: &mut C, id: i64) -> QueryResult<usize>;
    fn delete_silent_worker<C: LoadConnection<Backend = Self>>(
        conn: &mut C,
        id: i64,
        micros: i64,
    ) -> QueryResult<usize>;
    fn silent_workers<C: LoadConnection<Backend = Self>>(conn: &mut C, micros: i64) -> QueryResult<Vec<i64>>;
    fn workers<C: LoadConnection<Backend = Self>>(conn: &mut C) -> QueryResult<Vec<WorkerRow>>;

    fn promote<C: LoadConnection<Backend = Self>>(conn: &mut C, limit: i64) -> QueryResult<usize>;
    /// When the next scheduled job is due, and what time it is.
    fn next_run_at<C: LoadConnection<Backend = Self>>(
        conn: &mut C,
    ) -> QueryResult<(Option<DateTime<Utc>>, DateTime<Utc>)>;
    /// The same, and whether there are silent workers, and orphans.
    fn chores<C: LoadConnection<Backend = Self>>(conn: &mut C, micros: i64) -> QueryResult<Chores>;
    /// Jobs whose worker has no row; locked, where that needs no waiting, for the transaction that is open.
    fn orphans<C: LoadConnection<Backend = Self>>(conn: &mut C, limit: i64) -> QueryResult<Vec<Ticket>>;
    fn held_by<C: LoadConnection<Backend = Self>>(conn: &mut C, worker: i64) -> QueryResult<Vec<Ticket>>;
    /// Those of the orphans that nobody else has locked, locked; where reading them has not done so already.
    fn lock_orphans<C: LoadConnection<Backend = Self>>(
        _conn: &mut C,
        orphans: Vec<Ticket>,
    ) -> QueryResult<Vec<Ticket>> {
        Ok(orphans)
    }
    /// (id, whether it ended long enough ago), in the order of the ids.
    fn old_finished<C: LoadConnection<Backend = Self>>(
        conn: &mut C,
        status: Status,
        micros: i64,
        after: i64,
        limit: i64,
    ) -> QueryResult<Vec<(i64, bool)>>;
    /// Deletes finished jobs with all that is known of them, but for those that somebody has locked, and gives how many there
    /// were.
    fn delete_finished<C: LoadConnection<Backend = Self>>(conn: &mut C, ids: &[i64]) -> QueryResult<usize>;

    /// Wakes workers, where the database can.
    fn notify<C: LoadConnection<Backend = Self>>(_conn: &mut C) -> QueryResult<()> {
        Ok(())
    }
}

/// A row for `jobs_finished`.
#[doc(hidden)]
#[derive(Clone, Copy, Debug)]
pub struct Ending<'a> {
    pub job_id: i64,
    pub status: Status,
    pub attempts: i32,
    pub uncharged: i32,
    pub started_at: Option<DateTime<Utc>>,
    pub worker: Option<i64>,
    pub result: Option<&'a JsonText>,
    pub error: Option<&'a str>,
}

#[cfg(feature = "listen")]
pub(crate) use postgres::listen::{listen, received, while_unread};

/// Without the feature `listen`, nobody listens.
#[cfg(not(feature = "listen"))]
mod deaf {
    pub(crate) fn listen<C>(_conn: &mut C) -> diesel::QueryResult<bool> {
        Ok(false)
    }
    pub(crate) fn received<C>(_conn: &mut C) -> diesel::QueryResult<bool> {
        Ok(false)
    }
    pub(crate) fn while_unread<C>(_conn: &mut C, _work: &mut dyn FnMut()) -> diesel::QueryResult<bool> {
        Ok(false)
    }
}
#[cfg(not(feature = "listen"))]
pub(crate) use deaf::{listen, received, while_unread};
