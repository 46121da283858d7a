use crate::{Key, KeyValue, Report};
use job_db::MigrateError;

/// Why a run ended before its outcome was known. What its batches have committed stays done, and a later run goes on from there.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum PartitionError {
    /// An option that cannot be.
    #[error("{0}")]
    Invalid(&'static str),

    /// There is no such table.
    #[error("there is no table {0:?}")]
    UnknownTable(String),

    /// The table has no such column.
    #[error("table {table:?} has no column {key:?} to be its key")]
    UnknownKey {
        /// The table.
        table: String,
        /// The column.
        key: String,
    },

    /// The column holds something else than was said.
    #[error("the key {found:?} is not what Key::{expected:?} stands for")]
    WrongKey {
        /// What the column was said to hold.
        expected: Key,
        /// What it holds, as text.
        found: String,
    },

    /// The closure gave `Ok`, and every row that it was given is pending as before. Nothing of the batch is committed.
    #[error(
        "the closure succeeded, but row {key} and all other rows of its batch still meet the condition `{pending}`: \
         it must change each row so that it is no longer pending"
    )]
    NotMarked {
        /// The first of the rows.
        key: KeyValue,
        /// The condition.
        pending: String,
    },

    /// More rows failed than `max_failures` allows.
    #[error("{0}: that is more than max_failures allows")]
    TooManyFailures(Box<Report>),

    /// No connection could be made: at the start, or for the time that `patience` gives.
    #[error("no connection to the database: {0}")]
    Connect(String),

    /// The server lacks `SKIP LOCKED`.
    #[error(transparent)]
    ServerTooOld(MigrateError),

    /// The database refused one of the statements around the closure; look at `pending` and `columns`.
    #[error(transparent)]
    Database(#[from] diesel::result::Error),

    /// The operating system gave no thread.
    #[error("no thread could be started: {0}")]
    Thread(#[from] std::io::Error),
}
