//! A transaction of ours that met another one is simply run again.

use crate::{EnqueueError, Fault, JobConnection, JobError};
use diesel::result::Error;
use job_db::{Database, transaction_depth};

/// How often a transaction is tried. Who is to be patient for longer must pause in between, which is not for this crate.
const TRIES: u32 = 4;

/// An error that may hold one of the database.
pub(crate) trait MayBeContended {
    fn database(&self) -> Option<&Error>;
}

impl MayBeContended for Error {
    fn database(&self) -> Option<&Error> {
        Some(self)
    }
}

impl MayBeContended for JobError {
    fn database(&self) -> Option<&Error> {
        match self {
            JobError::Database(error) => Some(error),
            _ => None,
        }
    }
}

impl MayBeContended for EnqueueError {
    fn database(&self) -> Option<&Error> {
        match self {
            EnqueueError::Database(error) => Some(error),
            _ => None,
        }
    }
}

/// Runs `work` in a transaction of its own, again where another stood in its way. In a caller's transaction it runs once,
/// in a savepoint: there the caller's whole transaction must be run again.
pub(crate) fn write_transaction<C, T, E>(
    conn: &mut C,
    mut work: impl FnMut(&mut C) -> Result<T, E>,
) -> Result<T, E>
where
    C: JobConnection,
    E: From<Error> + MayBeContended,
{
    for _ in 1..TRIES {
        if transaction_depth(conn) > 0 {
            break;
        }
        match C::Db::write_transaction(conn, &mut work) {
            Err(error)
                if error
                    .database()
                    .is_some_and(|error| C::Db::fault(error) == Fault::Contended) => {}
            done => return done,
        }
    }
    C::Db::write_transaction(conn, work)
}
