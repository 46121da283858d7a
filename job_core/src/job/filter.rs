use crate::verbs::blocking::look;
use crate::{Job, JobConnection, JobError, Status};

/// A list of jobs, newest first. Pages by the key, so that nothing is skipped or shown twice.
#[derive(Clone, Debug)]
#[must_use = "call load(conn)"]
pub struct JobFilter {
    pub(crate) status: Option<Status>,
    pub(crate) queue: Option<String>,
    pub(crate) kind: Option<String>,
    pub(crate) before: i64,
    pub(crate) limit: i64,
}

impl Default for JobFilter {
    fn default() -> Self {
        JobFilter {
            status: None,
            queue: None,
            kind: None,
            before: i64::MAX,
            limit: 100,
        }
    }
}

impl JobFilter {
    /// Only jobs in this status.
    pub fn status(mut self, status: Status) -> Self {
        self.status = Some(status);
        self
    }

    /// Only jobs of this queue.
    pub fn queue(mut self, queue: impl Into<String>) -> Self {
        self.queue = Some(queue.into());
        self
    }

    /// Only jobs of this kind.
    pub fn kind(mut self, kind: impl Into<String>) -> Self {
        self.kind = Some(kind.into());
        self
    }

    /// Only jobs whose id is lower: the last of the page before.
    pub fn before(mut self, id: i64) -> Self {
        self.before = id;
        self
    }

    /// At most so many; 100 if not said.
    pub fn limit(mut self, limit: u32) -> Self {
        self.limit = limit.into();
        self
    }

    /// Reads the page.
    ///
    /// # Errors
    /// What the database says.
    pub fn load<C: JobConnection>(&self, conn: &mut C) -> Result<Vec<Job>, JobError> {
        look::list(conn, self)
    }
}
