use job_core::{JobConnection, JobError, JsonText, Outcome, Ticket, complete_all, discard_all};

/// A success that is recorded together with others of its sort.
pub(crate) trait Success: Sized {
    fn ticket(&self) -> &Ticket;
    fn outcome(&self) -> Outcome;
    /// Gives the ids of those that were recorded.
    fn record_all<C: JobConnection>(conn: &mut C, worker: i64, all: &[Self]) -> Result<Vec<i64>, JobError>;
}

/// A completion with the job's result.
impl Success for (Ticket, Option<JsonText>) {
    fn ticket(&self) -> &Ticket {
        &self.0
    }

    fn outcome(&self) -> Outcome {
        Outcome::Completed(self.1.clone())
    }

    fn record_all<C: JobConnection>(conn: &mut C, worker: i64, all: &[Self]) -> Result<Vec<i64>, JobError> {
        complete_all(conn, worker, all)
    }
}

/// The completion of a job that is to be discarded.
impl Success for Ticket {
    fn ticket(&self) -> &Ticket {
        self
    }

    fn outcome(&self) -> Outcome {
        Outcome::Discarded
    }

    fn record_all<C: JobConnection>(conn: &mut C, worker: i64, all: &[Self]) -> Result<Vec<i64>, JobError> {
        discard_all(conn, worker, all)
    }
}

/// Successes, and the kinds of their jobs for the log.
pub(crate) struct Successes<S> {
    pub(crate) jobs: Vec<S>,
    pub(crate) kinds: Vec<String>,
}

impl<S> Default for Successes<S> {
    fn default() -> Self {
        Successes {
            jobs: Vec::new(),
            kinds: Vec::new(),
        }
    }
}

impl<S> Successes<S> {
    pub(crate) fn push(&mut self, job: S, kind: String) {
        self.jobs.push(job);
        self.kinds.push(kind);
    }
}
