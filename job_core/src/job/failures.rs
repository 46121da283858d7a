use crate::verbs::blocking::look;
use crate::{Job, JobConnection, JobError};
use chrono::{DateTime, Utc};

/// One failed attempt.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failure {
    /// The number of the attempt among all claims of the job, from 1. Snoozed and released ones have numbers too.
    pub attempt: i32,
    /// When it was recorded, by the database's clock.
    pub failed_at: DateTime<Utc>,
    /// What went wrong.
    pub error: String,
}

impl Job {
    /// The job's failed attempts, the first one first.
    ///
    /// # Errors
    /// What the database says.
    pub fn failures<C: JobConnection>(&self, conn: &mut C) -> Result<Vec<Failure>, JobError> {
        look::failures(conn, self.id)
    }
}
