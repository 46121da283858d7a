//! Changes jobs from outside: each change is one transaction, or a savepoint of the caller's.

use super::look::latest;
use super::transaction::{Work, write_transaction};
use super::wake::wake;
use super::{JobBackend, JobConnection};
use crate::again::MayBeContended;
use crate::backend::Ending;
use crate::{Job, JobError, Status, limits};
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

/// What is to become of a job.
enum Wish {
    Cancel { reason: String },
    Discard,
    Retry,
}

/// A look at a job and its change.
struct Change {
    id: i64,
    wish: Wish,
}

verb! {
    pub(crate) fn cancel<C: JobConnection>(conn: &mut C, id: i64, reason: &str) -> Result<(), JobError> {
        let reason = limits::clean_error(reason);
        wait!(change(conn, id, Wish::Cancel { reason }))
    }
}

verb! {
    pub(crate) fn discard<C: JobConnection>(conn: &mut C, id: i64) -> Result<(), JobError> {
        wait!(change(conn, id, Wish::Discard))
    }
}

verb! {
    pub(crate) fn retry<C: JobConnection>(conn: &mut C, id: i64) -> Result<(), JobError> {
        wait!(change(conn, id, Wish::Retry))
    }
}

verb! {
    /// Looks at the job and changes it in one transaction, which is undone and tried again where the job moved on in
    /// between.
    fn change<C: JobConnection>(conn: &mut C, id: i64, wish: Wish) -> Result<(), JobError> {
        let change = Change { id, wish };
        for _ in 0..TRIES {
            match wait!(write_transaction(conn, &change)) {
                Ok(()) => return Ok(()),
                Err(Undo::MovedOn) => {}
                Err(Undo::Refused(error)) => return Err(error),
            }
        }
        Err(JobError::Unsettled(id))
    }
}

impl<C: JobConnection> Work<C> for Change {
    type Done = ();
    type Error = Undo;

    verb! {
        fn carry_out(&self, conn: &mut C) -> Result<(), Undo> {
            let job = wait!(latest(conn, self.id))?.ok_or(JobError::NotFound(self.id))?;
            match &self.wish {
                Wish::Cancel { reason } => wait!(end_as_cancelled(conn, &job, reason)),
                Wish::Discard => wait!(remove(conn, &job)),
                Wish::Retry => wait!(put_back(conn, &job)),
            }
        }
    }
}

verb! {
    fn end_as_cancelled<C: JobConnection>(conn: &mut C, job: &Job, reason: &str) -> Result<(), Undo> {
        if job.status().is_finished() {
            return Err(wrong_status(job, "cancelled"));
        }
        moved(wait!(C::Db::delete_state(conn, job))?)?;
        let ending = Ending {
            job_id: job.id,
            status: Status::Cancelled,
            attempts: job.state.attempts,
            uncharged: job.state.uncharged,
            started_at: job.state.started_at,
            worker: job.state.worker,
            result: None,
            error: Some(reason),
        };
        wait!(C::Db::insert_finished(conn, &ending))?;
        wait!(C::Db::free_key(conn, job.id))?;
        Ok(())
    }
}

verb! {
    fn remove<C: JobConnection>(conn: &mut C, job: &Job) -> Result<(), Undo> {
        if job.status() == Status::Processing {
            return Err(wrong_status(job, "discarded"));
        }
        moved(wait!(C::Db::delete_state(conn, job))?)?;
        wait!(C::Db::free_key(conn, job.id))?;
        wait!(C::Db::delete_facts(conn, &[job.id]))?;
        Ok(())
    }
}

verb! {
    fn put_back<C: JobConnection>(conn: &mut C, job: &Job) -> Result<(), Undo> {
        if !job.status().is_finished() {
            return Err(wrong_status(job, "retried"));
        }
        // First the status, then the key, as everywhere: an error undoes both.
        moved(wait!(C::Db::delete_state(conn, job))?)?;
        if let Some(key) = &job.unique_key
            && !wait!(C::Db::take_key(conn, key, job.id))?
        {
            return Err(match wait!(C::Db::key_holder(conn, key))? {
                Some(holder) => JobError::KeyTaken { id: job.id, holder }.into(),
                None => Undo::MovedOn,
            });
        }
        // All attempts so far are forgiven; their numbers go on, for the history and the fence.
        wait!(C::Db::insert_new(conn, job.id, job.state.attempts, job.state.attempts))?;
        // Here and not afterwards: a notification that failed in the caller's transaction would end it.
        wait!(wake(conn))?;
        Ok(())
    }
}

fn wrong_status(job: &Job, wish: &'static str) -> Undo {
    Undo::Refused(JobError::WrongStatus {
        id: job.id,
        status: job.status(),
        wish,
    })
}

/// A statement that should have hit the job's row in the status that we saw.
fn moved(rows: usize) -> Result<(), Undo> {
    if rows == 1 { Ok(()) } else { Err(Undo::MovedOn) }
}
