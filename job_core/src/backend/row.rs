//! From rows to values.

use crate::housekeeping::{Chores, until};
use crate::job::State;
use crate::{ClaimedJob, Failure, Job, JobError, Status, Ticket, WorkerRow};
use chrono::{DateTime, Utc};
use job_db::JsonText;

/// What a job's status tables and facts have, joined; the columns of [`JobRow`], in its order.
pub(super) const JOB_SELECT: &str = "SELECT j.id, j.kind, j.queue, j.priority, j.max_attempts, j.unique_key, \
     j.created_at, j.args, \
     CASE WHEN s.job_id IS NOT NULL THEN 0 WHEN n.job_id IS NOT NULL THEN 1 WHEN p.job_id IS NOT NULL THEN 2 \
          ELSE f.status END, \
     COALESCE(s.attempts, n.attempts, p.attempts, f.attempts, 0), \
     COALESCE(s.uncharged, n.uncharged, p.uncharged, f.uncharged, 0), \
     s.run_at, COALESCE(p.started_at, f.started_at), f.finished_at, COALESCE(p.worker, f.worker), f.result, \
     COALESCE(f.error, (SELECT x.error FROM job_failures x WHERE x.job_id = j.id ORDER BY x.attempt DESC LIMIT 1)) \
     FROM jobs j \
     LEFT JOIN jobs_scheduled s ON s.job_id = j.id \
     LEFT JOIN jobs_new n ON n.queue = j.queue AND n.priority = j.priority AND n.job_id = j.id \
     LEFT JOIN jobs_processing p ON p.job_id = j.id \
     LEFT JOIN jobs_finished f ON f.job_id = j.id ";

/// The SQL types of a joined job.
pub(super) mod job_sql {
    use diesel::sql_types::{BigInt, Integer, Nullable, Text};
    use job_db::{Instant, JsonDoc};

    pub(in crate::backend) type JobSql = (
        BigInt,
        Text,
        Text,
        Integer,
        Integer,
        Nullable<Text>,
        Instant,
        JsonDoc,
        Nullable<Integer>,
        Integer,
        Integer,
        Nullable<Instant>,
        Nullable<Instant>,
        Nullable<Instant>,
        Nullable<BigInt>,
        Nullable<JsonDoc>,
        Nullable<Text>,
    );
}

/// A joined job.
pub(super) type JobRow = (
    i64,
    String,
    String,
    i32,
    i32,
    Option<String>,
    DateTime<Utc>,
    JsonText,
    Option<i32>,
    i32,
    i32,
    Option<DateTime<Utc>>,
    Option<DateTime<Utc>>,
    Option<DateTime<Utc>>,
    Option<i64>,
    Option<JsonText>,
    Option<String>,
);

pub(super) fn job(row: JobRow) -> Result<Job, JobError> {
    Ok(Job {
        id: row.0,
        kind: row.1,
        queue: row.2,
        priority: row.3,
        max_attempts: row.4,
        unique_key: row.5,
        created_at: row.6,
        args: row.7,
        state: State {
            status: row
                .8
                .and_then(Status::from_code)
                .ok_or(JobError::NoStatus(row.0))?,
            attempts: row.9,
            uncharged: row.10,
            run_at: row.11,
            started_at: row.12,
            finished_at: row.13,
            worker: row.14,
            result: row.15,
            error: row.16,
        },
    })
}

/// A failed attempt: attempt, failed_at, error.
pub(super) type FailureRow = (i32, DateTime<Utc>, String);

pub(super) fn failure((attempt, failed_at, error): FailureRow) -> Failure {
    Failure {
        attempt,
        failed_at,
        error,
    }
}

/// A claimed job: id, kind, args, max_attempts, unique_key, attempts, uncharged, started_at.
pub(super) type ClaimedRow = (
    i64,
    String,
    JsonText,
    i32,
    Option<String>,
    i32,
    i32,
    DateTime<Utc>,
);

#[cfg(any(feature = "postgres", feature = "mysql"))] // SQLite claims row by row.
pub(super) fn all_claimed(worker: i64, rows: Vec<ClaimedRow>) -> Vec<ClaimedJob> {
    rows.into_iter().map(|row| claimed(worker, row)).collect()
}

pub(super) fn claimed(worker: i64, row: ClaimedRow) -> ClaimedJob {
    let (job_id, kind, args, max_attempts, unique_key, attempts, uncharged, started_at) = row;
    ClaimedJob {
        kind,
        args,
        ticket: Ticket {
            job_id,
            worker,
            attempts,
            uncharged,
            max_attempts,
            unique: unique_key.is_some(),
            started_at,
        },
    }
}

/// A job in `jobs_processing`: id, worker, attempts, uncharged, started_at, max_attempts, unique_key.
pub(super) type TicketRow = (i64, i64, i32, i32, DateTime<Utc>, i32, Option<String>);

pub(super) fn ticket(row: TicketRow) -> Ticket {
    let (job_id, worker, attempts, uncharged, started_at, max_attempts, unique_key) = row;
    Ticket {
        job_id,
        worker,
        attempts,
        uncharged,
        max_attempts,
        unique: unique_key.is_some(),
        started_at,
    }
}

/// A worker: id, host, pid, started_at, beat_at, kinds, queues.
pub(super) type WorkerTuple = (i64, String, i64, DateTime<Utc>, DateTime<Utc>, JsonText, JsonText);

pub(super) fn worker(row: WorkerTuple) -> WorkerRow {
    let (id, host, pid, started_at, beat_at, kinds, queues) = row;
    // Only people read them, and only we write them.
    let names = |json: JsonText| serde_json::from_str(&json.0).unwrap_or_default();
    WorkerRow {
        id,
        host,
        pid,
        started_at,
        beat_at,
        kinds: names(kinds),
        queues: names(queues),
    }
}

/// When the next scheduled job is due, what time it is, and 1 where there are silent workers, and where there are orphans.
pub(super) type ChoresRow = (Option<DateTime<Utc>>, DateTime<Utc>, i32, i32);

pub(super) fn chores((run_at, now, silent, orphans): ChoresRow) -> Chores {
    Chores {
        next_due: until(run_at, now),
        silent: silent == 1,
        orphans: orphans == 1,
    }
}
