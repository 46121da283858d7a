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

/// Counts the tries of what is a transaction as a whole.
#[derive(Default)]
pub(crate) struct Tries(u32);

impl Tries {
    /// Whether it is to be tried again: another transaction stood in its way. In a caller's transaction never, where the
    /// caller's whole transaction must be run again.
    pub(crate) fn again<DB: Database, T, E: MayBeContended>(
        &mut self,
        depth: u32,
        done: &Result<T, E>,
    ) -> bool {
        self.0 += 1;
        let contended = |error: &E| {
            error
                .database()
                .is_some_and(|error| DB::fault(error) == Fault::Contended)
        };
        self.0 < TRIES && depth == 0 && done.as_ref().is_err_and(contended)
    }
}

/// Counts the looks at jobs of which one was in no status table: a read without a snapshot (READ UNCOMMITTED and
/// SERIALIZABLE of MySQL and MariaDB) may come to each of the tables when the job is just not there.
#[derive(Default)]
pub(crate) struct Looks(u32);

impl Looks {
    /// Whether to look again.
    pub(crate) fn again<T>(&mut self, found: &Result<T, JobError>) -> bool {
        self.0 += 1;
        self.0 <= LOOKS && matches!(found, Err(JobError::NoStatus(_)))
    }
}

/// Runs `work`, which is a transaction as a whole, again where another stood in its way.
pub(crate) fn run<C, T, E>(conn: &mut C, mut work: impl FnMut(&mut C) -> Result<T, E>) -> Result<T, E>
where
    C: JobConnection,
    E: MayBeContended,
{
    let mut tries = Tries::default();
    loop {
        let done = work(conn);
        if !tries.again::<C::Db, _, _>(transaction_depth(conn), &done) {
            return done;
        }
    }
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
