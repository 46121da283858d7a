use crate::{Key, KeyValue, Report};
use job_db::MigrateError;

/// Why a run ended before its outcome was known. What its batches have committed stays done, and a later run goes on from there.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum PartitionError {
    /// An option that cannot be.
    #[error("{0}")]
    Invalid(&'static str),

    /// A piece of SQL that cannot be pasted into the statements.
    #[error("{option}({sql:?}) cannot be part of a statement: {flaw}")]
    InvalidSql {
        /// `pending` or `columns`.
        option: &'static str,
        /// The piece.
        sql: String,
        /// What is wrong with it.
        flaw: String,
    },

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
    #[error(
        "the key {key:?} {found} is not what Key::{expected:?} stands for, which is {accepted}: say with key() what the \
         column holds, or choose a column that holds it"
    )]
    WrongKey {
        /// The key's column.
        key: String,
        /// What the column was said to hold.
        expected: Key,
        /// What it holds: `with the value` and a value in quotes, or `of type` and a type.
        found: String,
        /// What the column may hold.
        accepted: &'static str,
    },

    /// No index makes the key unique. Rows are known by their keys alone, so that of rows with equal keys some would be marked
    /// without having been done, and others fail.
    #[error(
        "no primary key and no unique index of the column alone makes the key {key:?} of table {table:?} unique, and of rows \
         with equal keys some may be marked without having been done: choose a column that is unique, make a unique index, or \
         call key_is_unique() if it is unique for another reason"
    )]
    NotUnique {
        /// The table.
        table: String,
        /// The key's column.
        key: String,
    },

    /// The table is a view whose rows MySQL or MariaDB would not lock, so that two workers could do the same ones.
    #[error(
        "the rows of view {0:?} cannot be locked, since it is not one that can be updated: partition the table that it is \
         made of, or leave GROUP BY, DISTINCT, UNION and ALGORITHM = TEMPTABLE out of it"
    )]
    NoRowLocks(String),

    /// The database gives keys in an order that is not the one in which it compares them, so that the run would never end.
    #[error(
        "the key {key:?} of table {table:?} leads in a circle: behind a key the database gives one that came before it, so \
         that it compares keys otherwise than it reads or sorts them. Rebuild the column's index if its collation has \
         changed, see that connections read keys without loss, or choose another column as key"
    )]
    Circle {
        /// The table.
        table: String,
        /// The key's column.
        key: String,
    },

    /// A pending row has no key.
    #[error(
        "a pending row of table {table:?} has NULL in its key {key:?}, so that no worker can take it: give it a key, make the \
         column NOT NULL, or leave such rows out by pending()"
    )]
    NullKey {
        /// The table.
        table: String,
        /// The key's column.
        key: String,
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

    /// The closure takes rows away from under their keys, and again and again, after as many rows were done as had been
    /// pending, no fewer were. What was done is committed.
    #[error(
        "{rows} rows were done, and with {pending} pending there are no fewer than before: the closure must not change the \
         key {key:?}, nor bring rows back that it removes; or else rows are added faster than this run does them"
    )]
    NoEnd {
        /// The rows that this run has done.
        rows: u64,
        /// The rows that are pending.
        pending: u64,
        /// The key's column.
        key: String,
    },

    /// More rows failed than `max_failures` allows.
    #[error("{0}: that is more than max_failures allows")]
    TooManyFailures(Box<Report>),

    /// No connection could be made: at the start, or for the time that `patience` gives by the last thread that was left.
    #[error("no connection to the database: {0}")]
    Connect(String),

    /// The server lacks `SKIP LOCKED`.
    #[error(transparent)]
    ServerTooOld(MigrateError),

    /// The database refused one of the statements around the closure.
    #[error(
        "the database refused a statement of the run: {0}. What was committed stays done, and a run that is started again \
         goes on from there; if it speaks of SQL, look at pending() and columns()"
    )]
    Database(diesel::result::Error),

    /// The operating system gave no thread.
    #[error("no thread could be started: {0}")]
    Thread(#[from] std::io::Error),
}

// Not as a source: its text is in the message, and anyhow would show it twice.
impl From<diesel::result::Error> for PartitionError {
    fn from(error: diesel::result::Error) -> Self {
        PartitionError::Database(error)
    }
}
