//! What people and programs do to a job from outside: cancel, discard, retry.

use crate::verbs::blocking;
use crate::{Job, JobConnection, JobError};

impl Job {
    /// Ends a job that has not ended, as cancelled, with a reason for people. A job that is being performed goes on, but
    /// its outcome is refused, and what it does in [`Run::transaction`](crate::Run::transaction) is rolled back.
    ///
    /// ```
    /// # #[cfg(feature = "sqlite")] {
    /// # use diesel::prelude::*;
    /// # use job_core::{Job, JobError, Perform, Run, Status};
    /// # #[derive(serde::Serialize, serde::Deserialize)] struct Ship { order: i64 }
    /// # impl Perform for Ship {
    /// #     const KIND: &'static str = "ship"; type Context = (); type Output = ();
    /// #     fn perform(&self, _: &Run<'_, ()>) -> anyhow::Result<()> { Ok(()) }
    /// # }
    /// # let conn = &mut SqliteConnection::establish(":memory:").unwrap();
    /// # job_core::migrate(conn).unwrap();
    /// let id = Ship { order: 17 }.enqueue(conn).unwrap().id;
    /// Job::cancel(conn, id, "the customer changed his mind").unwrap();
    /// assert_eq!(Job::find(conn, id).unwrap().status(), Status::Cancelled);
    ///
    /// // It has ended, so that it cannot be cancelled again; but it may be performed after all.
    /// assert!(matches!(Job::cancel(conn, id, "again"), Err(JobError::WrongStatus { .. })));
    /// Job::retry(conn, id).unwrap();
    /// assert_eq!(Job::find(conn, id).unwrap().status(), Status::New);
    /// # }
    /// ```
    ///
    /// In a transaction it locks the job until the commit. If the job is being performed and ends meanwhile, its outcome waits
    /// for that commit; on MySQL and MariaDB, with all others that its worker has to record: do nothing slow between the two.
    ///
    /// # Errors
    /// [`JobError::WrongStatus`] where it has ended.
    pub fn cancel<C: JobConnection>(conn: &mut C, id: i64, reason: &str) -> Result<(), JobError> {
        blocking::change::cancel(conn, id, reason)
    }

    /// Removes a job and everything about it. One that is being performed cannot be discarded: cancel it first.
    ///
    /// # Errors
    /// [`JobError::WrongStatus`] where it is being performed.
    pub fn discard<C: JobConnection>(conn: &mut C, id: i64) -> Result<(), JobError> {
        blocking::change::discard(conn, id)
    }

    /// Puts a job that has ended, whatever its end, back to be performed again, with all its attempts before it. Its
    /// history stays.
    ///
    /// # Errors
    /// [`JobError::WrongStatus`] where it has not ended, [`JobError::KeyTaken`] where its unique key is held by another
    /// job; it stays as it is then.
    pub fn retry<C: JobConnection>(conn: &mut C, id: i64) -> Result<(), JobError> {
        blocking::change::retry(conn, id)
    }
}
