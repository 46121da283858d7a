//! A transaction of ours that met another one is simply run again.

use crate::{EnqueueError, Fault, JobConnection, JobError};
use diesel::result::Error;
use job_db::{Database, transaction_depth};

/// How often a transaction is tried. Who is to be patient for longer must pause in between, which is not for this crate.
const TRIES: u32 = 4;

/// How often a job that moves is looked at.
const LOOKS: u32 = 16;

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

/// Runs `work`, which is a transaction as a whole, again where another stood in its way. In a caller's transaction it runs
/// once: there the caller's whole transaction must be run again.
pub(crate) fn run<C, T, E>(conn: &mut C, mut work: impl FnMut(&mut C) -> Result<T, E>) -> Result<T, E>
where
    C: JobConnection,
    E: MayBeContended,
{
    for _ in 1..TRIES {
        if transaction_depth(conn) > 0 {
            break;
        }
        match work(conn) {
            Err(error)
                if error
                    .database()
                    .is_some_and(|error| C::Db::fault(error) == Fault::Contended) => {}
            done => return done,
        }
    }
    work(conn)
}

/// Runs `work` in a transaction, or in a savepoint of the caller's, in the manner of [`run`].
pub(crate) fn write_transaction<C, T, E>(
    conn: &mut C,
    mut work: impl FnMut(&mut C) -> Result<T, E>,
) -> Result<T, E>
where
    C: JobConnection,
    E: From<Error> + MayBeContended,
{
    run(conn, |conn| C::Db::write_transaction(conn, &mut work))
}

/// Looks at jobs again where one was in no status table: a read without a snapshot (READ UNCOMMITTED and SERIALIZABLE of
/// MySQL and MariaDB) may come to each of the tables when the job is just not there.
pub(crate) fn look<T>(mut look: impl FnMut() -> Result<T, JobError>) -> Result<T, JobError> {
    for _ in 0..LOOKS {
        match look() {
            Err(JobError::NoStatus(_)) => {}
            done => return done,
        }
    }
    look()
}
