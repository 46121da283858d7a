mod hints;

use crate::Status;
use chrono::{DateTime, Utc};
use diesel::result::Error;

/// Why a job was not enqueued. Nothing was written, and the caller's transaction can go on, but for
/// [`EnqueueError::Serialization`], after which it may be over, and [`EnqueueError::Database`] on PostgreSQL.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum EnqueueError {
    /// A kind, queue or unique key is empty, too long or has control characters.
    #[error("the {what} `{shown}` {problem}: choose one of 1 to {max} bytes without control characters")]
    BadName {
        /// Which name: `kind`, `queue` or `unique key`.
        what: &'static str,
        /// Its beginning, with control characters escaped.
        shown: String,
        /// What is wrong with it.
        problem: &'static str,
        /// The longest length, in bytes.
        max: usize,
    },
    /// The arguments are too long.
    #[error(
        "the arguments of {kind} are {bytes} bytes of JSON and may be {max}: keep the data in a table or a file and pass its \
         key, or raise the limit with `max_args_bytes`"
    )]
    ArgsTooLong {
        /// The job's kind.
        kind: &'static str,
        /// The size of the JSON text, in bytes.
        bytes: usize,
        /// The limit, in bytes.
        max: usize,
    },
    /// The arguments are nested too deeply to be decoded again.
    #[error("the arguments of {kind} are nested more than {max} levels deep: make them flatter", max = crate::limits::MAX_JSON_DEPTH)]
    ArgsTooDeep {
        /// The job's kind.
        kind: &'static str,
    },
    /// The arguments hold the character NUL. PostgreSQL cannot turn such JSON into `jsonb`, nor read a text out of it.
    #[error(
        "the arguments of {kind} hold the character NUL, which {database} cannot read out of JSON: remove or encode it"
    )]
    NulInArgs {
        /// The job's kind.
        kind: &'static str,
        /// The database's name.
        database: &'static str,
    },
    /// The arguments hold a number far beyond what `f64` holds.
    #[error(
        "the arguments of {kind} hold a number with an exponent above 400, which could not be decoded again: pass it as text"
    )]
    HugeNumberInArgs {
        /// The job's kind.
        kind: &'static str,
    },
    /// The arguments cannot be written as JSON.
    #[error("the arguments of {kind} cannot be written as JSON: {source}")]
    Encode {
        /// The job's kind.
        kind: &'static str,
        /// What serde said.
        source: serde_json::Error,
    },
    /// `max_attempts` is out of range.
    #[error("max_attempts is {0}: choose a number from 1 to {max}", max = crate::limits::MAX_ATTEMPTS)]
    BadMaxAttempts(i32),
    /// `priority` is out of range.
    #[error("priority is {0}: choose a number from -{max} to {max}; the lower goes first", max = crate::limits::MAX_PRIORITY)]
    BadPriority(i32),
    /// `run_at` is out of what every database can hold.
    #[error("run_at is {0}: choose a time in the years 1000 to 9999")]
    BadRunAt(DateTime<Utc>),
    /// `run_in` is too long.
    #[error("run_in is {0:?}: choose at most 1000 years")]
    BadRunIn(std::time::Duration),
    /// Another transaction stood in this one's way, and only a new one can enqueue the job: run your whole transaction
    /// again. At REPEATABLE READ or SERIALIZABLE the unique key was taken by a transaction that this one cannot see; or, on
    /// MySQL and MariaDB, a deadlock or "Record has changed since last read" made the server roll back all of it.
    ///
    /// On PostgreSQL the transaction is still usable. On MySQL and MariaDB it may be over: give the error on. What you
    /// would write after it is in no transaction; Diesel then refuses the commit with
    /// [`BrokenTransactionManager`](Error::BrokenTransactionManager), and further transactions on this connection, so take
    /// another one. (A pool of Diesel's drops it by itself.)
    #[error(
        "another transaction stood in the way, or took the unique key after this one's snapshot: run your whole transaction \
         again, on another connection where this one is broken, or run it at READ COMMITTED"
    )]
    Serialization,
    /// The unique key changed hands each time that we looked.
    #[error("the unique key changed hands again and again: try again")]
    KeyUnsettled,
    /// The database said no.
    #[error("{error}{hint}", error = .0, hint = hints::of(.0))]
    Database(Error),
}

/// Why a job could not be found, read or changed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum JobError {
    /// There is no such job: it never was, was discarded, was pruned, or has completed and its kind has
    /// [`DISCARD_COMPLETED`](crate::Perform::DISCARD_COMPLETED).
    #[error(
        "there is no job {0}: it never was, was discarded or pruned, its transaction was rolled back, or it has completed \
         and its kind has DISCARD_COMPLETED"
    )]
    NotFound(i64),
    /// The job is not in a status that allows the change.
    #[error(
        "job {id} is {status} and cannot be {wish}: look at its status first, and leave out or wait for such jobs"
    )]
    WrongStatus {
        /// The job.
        id: i64,
        /// Its status.
        status: Status,
        /// What was asked for: `cancelled`, `discarded`, `retried`.
        wish: &'static str,
    },
    /// The job moved on while we tried to change it, again and again.
    #[error("job {0} changed its status each time that it was to be changed: try again")]
    Unsettled(i64),
    /// The job does not belong to this claim any more: it was rescued, cancelled or has ended.
    #[error(
        "job {0} is no longer this worker's: it was rescued, cancelled or has ended; its outcome was not recorded"
    )]
    Lost(i64),
    /// The job's unique key is held by another job.
    #[error(
        "job {id} cannot be retried: its unique key is held by job {holder}; wait until that one has ended, or cancel it"
    )]
    KeyTaken {
        /// The job.
        id: i64,
        /// The job that holds the key.
        holder: i64,
    },
    /// A claim was asked for inside a transaction; it must be committed before the job is performed.
    #[error("a job must not be claimed inside a transaction: end the transaction first")]
    InTransaction,
    /// The arguments or the result do not decode into the type asked for.
    #[error(
        "the {what} of job {id} does not decode: {source}; ask for the type that it was written as, or let the type accept both"
    )]
    Decode {
        /// The job.
        id: i64,
        /// `arguments` or `result`.
        what: &'static str,
        /// What serde said.
        source: serde_json::Error,
    },
    /// The job has no result: it has not completed.
    #[error("job {id} is {status} and has no result")]
    NoOutput {
        /// The job.
        id: i64,
        /// Its status.
        status: Status,
    },
    /// Somebody changed the tables by hand: a job has no status.
    #[error("job {0} has a row in none of the status tables: the tables were changed by hand")]
    NoStatus(i64),
    /// The database said no.
    #[error("{error}{hint}", error = .0, hint = hints::of(.0))]
    Database(Error),
}

// Not by `#[from]`: the error's own text is a part of ours, and would be shown twice where causes are.
impl From<Error> for EnqueueError {
    fn from(error: Error) -> Self {
        EnqueueError::Database(error)
    }
}

impl From<Error> for JobError {
    fn from(error: Error) -> Self {
        JobError::Database(error)
    }
}

/// So that `enqueue(conn)?` works in a transaction whose closure gives `diesel::QueryResult`.
impl From<EnqueueError> for Error {
    fn from(error: EnqueueError) -> Self {
        match error {
            EnqueueError::Database(error) => error,
            other => Error::QueryBuilderError(Box::new(other)),
        }
    }
}

/// So that `Job::find(conn, id)?` works in a function that gives `diesel::QueryResult`.
impl From<JobError> for Error {
    fn from(error: JobError) -> Self {
        match error {
            JobError::Database(error) => error,
            JobError::NotFound(_) => Error::NotFound,
            other => Error::QueryBuilderError(Box::new(other)),
        }
    }
}
