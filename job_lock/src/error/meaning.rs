use super::LockError;
use crate::backend::{Clash, LockBackend};
use crate::{LockConnection, MigrateError};
use diesel::result::Error;
use job_db::{Database, Fault};

impl LockError {
    /// Gives the database's error while a lock was taken its meaning.
    pub(crate) fn taking<DB: LockBackend>(error: Error, name: &str) -> Self {
        match (DB::clash(&error), DB::fault(&error)) {
            (Some(clash), _) => Self::clash(clash, name),
            // The session's own limit on waiting, such as PostgreSQL's lock_timeout.
            (None, Fault::Contended) if !DB::was_cancelled(&error) => Self::Busy(name.to_owned()),
            (None, _) => Self::Database(error),
        }
    }

    /// Gives the database's error at COMMIT its meaning.
    pub(crate) fn committing<DB: LockBackend>(error: Error, name: &str) -> Self {
        match DB::clash(&error) {
            Some(clash) => Self::clash(clash, name),
            None => Self::Database(error),
        }
    }

    /// A statement that the server does not know may only be too new for it.
    pub(crate) fn explained<C: LockConnection>(self, conn: &mut C) -> Self {
        if let Self::Database(error) = &self
            && C::Db::fault(error) == Fault::Other
            && let Err(MigrateError::ServerTooOld { server, needed }) = C::Db::check_server(conn)
        {
            return Self::ServerTooOld { server, needed };
        }
        self
    }

    fn clash(clash: Clash, name: &str) -> Self {
        match clash {
            Clash::Deadlock => Self::Deadlock(name.to_owned()),
            Clash::Stale => Self::Serialization(name.to_owned()),
        }
    }
}

impl From<Error> for LockError {
    fn from(error: Error) -> Self {
        Self::Database(error)
    }
}

/// For closures that give Diesel's error: a database's error as it is, any other as a `QueryBuilderError` with the
/// [`LockError`] in it.
impl From<LockError> for Error {
    fn from(error: LockError) -> Self {
        match error {
            LockError::Database(error) => error,
            other => Self::QueryBuilderError(Box::new(other)),
        }
    }
}
