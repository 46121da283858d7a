use chrono::{DateTime, Utc};
use diesel::backend::Backend;
use diesel::connection::LoadConnection;
use diesel::result::{DatabaseErrorKind, Error, QueryResult};
use std::time::Duration;

use crate::{MigrateError, MigrationFile};

/// What is known of an error of the database, for the caller who must choose between trying again and giving up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// The server or the network went away: open a new connection and try again.
    Disconnected,
    /// Two transactions stood in each other's way (serialization failure, deadlock, lock wait, a busy file) or a
    /// statement ran out of its time: the same transaction may succeed when it is tried again.
    Contended,
    /// Anything else.
    Other,
}

pub(crate) mod sealed {
    /// Keeps [`Database`](super::Database) to the three backends of this crate.
    pub trait Sealed {}
}

#[diagnostic::on_unimplemented(
    message = "Gatun does not know the database `{Self}` in this build",
    note = "enable the feature `postgres`, `mysql` or `sqlite` of job_core, job_worker, job_lock or job_partition"
)]
/// What differs between the databases and is not about jobs or locks. Implemented for Diesel's `Pg`, `Mysql` and
/// `Sqlite`, never for a connection type, so that every connection to one of them works.
pub trait Database: Backend + sealed::Sealed + Sized + 'static {
    /// The name for people: `PostgreSQL`, `MySQL/MariaDB`, `SQLite`.
    const NAME: &'static str;

    /// Whether a JSON document may hold the character NUL. PostgreSQL's `json` does, but no cast to `jsonb` and no operator
    /// that gives text takes it.
    const JSON_HOLDS_NUL: bool;

    /// Whether a transaction that failed inside can go on after a rollback to a savepoint only.
    const ABORTS_TRANSACTION_ON_ERROR: bool;

    /// An SQL expression for the current instant by the database's clock, of type [`Instant`](crate::Instant).
    const NOW_SQL: &'static str;

    /// The SQL before and behind a number of microseconds, for the instant so far from now.
    const AFTER_SQL: (&'static str, &'static str);

    /// The same migrations as [`migrations`](Self::migrations) gives, as files that an app may own.
    const MIGRATION_FILES: &'static [MigrationFile];

    /// The time by the database's clock.
    fn now<C>(conn: &mut C) -> QueryResult<DateTime<Utc>>
    where
        C: LoadConnection<Backend = Self>;

    /// Sets up a session of Gatun's own (never a caller's): time limits, isolation READ COMMITTED, a plan mode.
    fn prepare_session<C>(conn: &mut C, statement_timeout: Duration) -> QueryResult<()>
    where
        C: LoadConnection<Backend = Self>;

    /// Whether [`limit_lock_waits`](Self::limit_lock_waits) does so.
    const LIMITS_LOCK_WAITS: bool;

    /// Lets a session of Gatun's own wait for a row's lock for so long at most.
    fn limit_lock_waits<C>(_conn: &mut C, _limit: Duration) -> QueryResult<()>
    where
        C: LoadConnection<Backend = Self>,
    {
        Ok(())
    }

    /// The same for one transaction, which runs behind a proxy that pools transactions: what is set on a session there stays
    /// with the server's session, which others get next.
    fn prepare_transaction<C>(_conn: &mut C, _statement_timeout: Duration) -> QueryResult<()>
    where
        C: LoadConnection<Backend = Self>,
    {
        Ok(())
    }

    /// Gives a session that belongs to jobs what it lacks for use beside others; on SQLite, that it waits for a lock.
    fn prepare_shared<C>(_conn: &mut C) -> QueryResult<()>
    where
        C: LoadConnection<Backend = Self>,
    {
        Ok(())
    }

    /// Rolls a transaction back that somebody has begun by SQL, behind Diesel's back, and left open; where there is none,
    /// nothing happens.
    fn end_forgotten_transaction<C>(conn: &mut C)
    where
        C: LoadConnection<Backend = Self>,
    {
        // Where there is none, MySQL says nothing, and what SQLite says does not matter.
        let _ = conn.batch_execute("ROLLBACK");
    }

    /// Runs `work` in a transaction at READ COMMITTED; on SQLite the write lock is taken at once. Inside an open
    /// transaction it nests as a savepoint, at that one's isolation level.
    fn write_transaction<C, T, E>(conn: &mut C, work: impl FnOnce(&mut C) -> Result<T, E>) -> Result<T, E>
    where
        C: LoadConnection<Backend = Self>,
        E: From<Error>;

    /// Says what kind of fault an error is.
    fn fault(error: &Error) -> Fault {
        match error {
            Error::DatabaseError(DatabaseErrorKind::SerializationFailure, _) => Fault::Contended,
            Error::DatabaseError(DatabaseErrorKind::ClosedConnection, _)
            | Error::BrokenTransactionManager => Fault::Disconnected,
            Error::DatabaseError(DatabaseErrorKind::UnableToSendCommand, _) => Fault::Disconnected,
            Error::DatabaseError(_, info) => Self::fault_of_message(info.message()),
            Error::RollbackErrorOnCommit { commit_error, .. } => Self::fault(commit_error),
            _ => Fault::Other,
        }
    }

    /// Says what kind of fault the server's message tells, since Diesel does not pass the error's code on.
    fn fault_of_message(message: &str) -> Fault;

    /// Refuses a server that is too old, by name and version.
    fn check_server<C>(conn: &mut C) -> Result<(), MigrateError>
    where
        C: LoadConnection<Backend = Self>;

    /// Which of `tables` exist in the place where unqualified names are created.
    fn existing_tables<C>(conn: &mut C, tables: &[&str]) -> QueryResult<Vec<String>>
    where
        C: LoadConnection<Backend = Self>;

    /// The names of a table's columns, in order; empty if there is no such table.
    fn columns<C>(conn: &mut C, table: &str) -> QueryResult<Vec<String>>
    where
        C: LoadConnection<Backend = Self>;

    /// The newest version in the table of versions, 0 where it has none.
    fn max_version<C>(conn: &mut C) -> Result<i64, MigrateError>
    where
        C: LoadConnection<Backend = Self>;

    /// Runs `work` while no other process migrates this database; in one transaction where DDL allows it.
    fn migrate_alone<C>(
        conn: &mut C,
        work: impl FnOnce(&mut C) -> Result<usize, MigrateError>,
    ) -> Result<usize, MigrateError>
    where
        C: LoadConnection<Backend = Self>;

    /// The embedded migrations: version, name, SQL to run.
    fn migrations() -> Result<Vec<Box<dyn diesel::migration::Migration<Self>>>, MigrateError>;
}
