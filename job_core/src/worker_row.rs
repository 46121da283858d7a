use crate::backend::JobBackend;
use crate::{JobConnection, JobError};
use chrono::{DateTime, Utc};

/// A worker's row in `workers`: one process that claims jobs, alive for as long as it beats. Its id is random, so that a
/// restarted process is another worker and its former self's jobs are rescued.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WorkerRow {
    /// Random, new at each start.
    pub id: i64,
    /// The machine's name, for people.
    pub host: String,
    /// The process's number, for people.
    pub pid: i64,
    /// When it was registered, by the database's clock.
    pub started_at: DateTime<Utc>,
    /// When it last showed that it lives, by the database's clock.
    pub beat_at: DateTime<Utc>,
    /// The kinds that it can perform.
    pub kinds: Vec<String>,
    /// The queues that it looks at.
    pub queues: Vec<String>,
}

impl WorkerRow {
    /// Registers this process as a worker, for these queues and kinds. Without a row a worker can claim nothing.
    ///
    /// # Errors
    /// What the database says.
    pub fn register<C: JobConnection>(
        conn: &mut C,
        queues: &[String],
        kinds: &[String],
    ) -> Result<WorkerRow, JobError> {
        let now = job_db::now(conn)?;
        let row = WorkerRow {
            id: fastrand::i64(1..),
            host: job_db::host_name().to_owned(),
            pid: std::process::id().into(),
            started_at: now,
            beat_at: now,
            kinds: kinds.to_vec(),
            queues: queues.to_vec(),
        };
        C::Db::insert_worker(conn, &row)?;
        Ok(row)
    }

    /// Shows that the worker lives. `false` where it was declared dead in the meantime: its jobs were rescued or will be,
    /// and it must register anew.
    ///
    /// # Errors
    /// What the database says.
    pub fn beat<C: JobConnection>(conn: &mut C, id: i64) -> Result<bool, JobError> {
        Ok(C::Db::beat(conn, id)? == 1)
    }

    /// Removes the worker's row at the end of its life. Jobs that it still holds are rescued.
    ///
    /// # Errors
    /// What the database says.
    pub fn unregister<C: JobConnection>(conn: &mut C, id: i64) -> Result<(), JobError> {
        C::Db::delete_worker(conn, id)?;
        Ok(())
    }

    /// All workers that have a row, the oldest first.
    ///
    /// # Errors
    /// What the database says.
    pub fn list<C: JobConnection>(conn: &mut C) -> Result<Vec<WorkerRow>, JobError> {
        Ok(C::Db::workers(conn)?)
    }
}
