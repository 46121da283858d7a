//! What people and programs do to a job from outside: cancel, discard, retry.

use crate::again::MayBeContended;
use crate::backend::{Ending, JobBackend};
use crate::{Job, JobConnection, JobError, Status, again, limits};
use diesel::result::Error;

/// How often a job may move on under our hands before we give up.
const TRIES: u32 = 16;

/// Undoes a try: the job moved on between our look and our change.
enum Undo {
    MovedOn,
    Refused(JobError),
}

impl MayBeContended for Undo {
    fn database(&self) -> Option<&Error> {
        match self {
            Undo::Refused(error) => error.database(),
            Undo::MovedOn => None,
        }
    }
}

impl From<Error> for Undo {
    fn from(error: Error) -> Self {
        Undo::Refused(error.into())
    }
}

impl From<JobError> for Undo {
    fn from(error: JobError) -> Self {
        Undo::Refused(error)
    }
}

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
    /// # Errors
    /// [`JobError::WrongStatus`] where it has ended.
    pub fn cancel<C: JobConnection>(conn: &mut C, id: i64, reason: &str) -> Result<(), JobError> {
        let reason = limits::clean_error(reason);
        change(conn, id, |conn, job| {
            if job.status().is_finished() {
                return Err(wrong_status(job, "cancelled").into());
            }
            moved(C::Db::delete_state(conn, job)?)?;
            C::Db::insert_finished(
                conn,
                &Ending {
                    job_id: id,
                    status: Status::Cancelled,
                    attempts: job.state.attempts,
                    uncharged: job.state.uncharged,
                    started_at: job.state.started_at,
                    worker: job.state.worker,
                    result: None,
                    error: Some(&reason),
                },
            )?;
            C::Db::free_key(conn, id)?;
            Ok(())
        })
    }

    /// Removes a job and everything about it. One that is being performed cannot be discarded: cancel it first.
    ///
    /// # Errors
    /// [`JobError::WrongStatus`] where it is being performed.
    pub fn discard<C: JobConnection>(conn: &mut C, id: i64) -> Result<(), JobError> {
        change(conn, id, |conn, job| {
            if job.status() == Status::Processing {
                return Err(wrong_status(job, "discarded").into());
            }
            moved(C::Db::delete_state(conn, job)?)?;
            C::Db::free_key(conn, id)?;
            C::Db::delete_facts(conn, &[id])?;
            Ok(())
        })
    }

    /// Puts a job that has ended, whatever its end, back to be performed again, with all its attempts before it. Its
    /// history stays.
    ///
    /// # Errors
    /// [`JobError::WrongStatus`] where it has not ended, [`JobError::KeyTaken`] where its unique key is held by another
    /// job; it stays as it is then.
    pub fn retry<C: JobConnection>(conn: &mut C, id: i64) -> Result<(), JobError> {
        change(conn, id, |conn, job| {
            if !job.status().is_finished() {
                return Err(wrong_status(job, "retried").into());
            }
            // First the status, then the key, as everywhere: an error undoes both.
            moved(C::Db::delete_state(conn, job)?)?;
            if let Some(key) = &job.unique_key
                && !C::Db::take_key(conn, key, id)?
            {
                return Err(match C::Db::key_holder(conn, key)? {
                    Some(holder) => JobError::KeyTaken { id, holder }.into(),
                    None => Undo::MovedOn,
                });
            }
            // All attempts so far are forgiven; their numbers go on, for the history and the fence.
            C::Db::insert_new(conn, id, job.state.attempts, job.state.attempts)?;
            Ok(())
        })?;
        crate::notify::wake(conn);
        Ok(())
    }
}

fn wrong_status(job: &Job, wish: &'static str) -> JobError {
    JobError::WrongStatus {
        id: job.id,
        status: job.status(),
        wish,
    }
}

/// A statement that should have hit the job's row in the status that we saw.
fn moved(rows: usize) -> Result<(), Undo> {
    if rows == 1 { Ok(()) } else { Err(Undo::MovedOn) }
}

/// Looks at the job and changes it in one transaction, which is undone and tried again where the job moved on in between.
fn change<C: JobConnection>(
    conn: &mut C,
    id: i64,
    work: impl Fn(&mut C, &Job) -> Result<(), Undo>,
) -> Result<(), JobError> {
    for _ in 0..TRIES {
        let tried = again::write_transaction(conn, |conn| {
            let job = again::look(|| C::Db::find_latest(conn, id))?.ok_or(JobError::NotFound(id))?;
            work(conn, &job)?;
            Ok(())
        });
        match tried {
            Ok(()) => return Ok(()),
            Err(Undo::MovedOn) => {}
            Err(Undo::Refused(error)) => return Err(error),
        }
    }
    Err(JobError::Unsettled(id))
}
