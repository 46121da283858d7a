use crate::new_job::NewRow;
use crate::verbs::blocking;
use crate::{ClaimedJob, EnqueueError, IntoNewJob, JobConnection, JobError, Status, WorkerRow};
use chrono::{DateTime, Utc};
use job_db::JsonText;
use serde::de::DeserializeOwned;

mod change;
mod count;
mod failures;
mod filter;

pub use count::Counts;
pub use failures::Failure;
pub use filter::JobFilter;

/// A job as it stood when it was read: its facts, which never change, and its status.
#[derive(Clone, Debug)]
pub struct Job {
    /// The key; a later job has a higher one.
    pub id: i64,
    /// [`Perform::KIND`](crate::Perform::KIND).
    pub kind: String,
    /// The queue.
    pub queue: String,
    /// The lower goes first.
    pub priority: i32,
    /// How many attempts it has, the first included.
    pub max_attempts: i32,
    /// The key that no other waiting job may have, if it has one.
    pub unique_key: Option<String>,
    /// When it was enqueued, by the database's clock.
    pub created_at: DateTime<Utc>,
    pub(crate) args: JsonText,
    pub(crate) state: State,
}

/// What the status tables say of a job.
#[derive(Clone, Debug)]
pub(crate) struct State {
    pub(crate) status: Status,
    pub(crate) attempts: i32,
    pub(crate) uncharged: i32,
    pub(crate) run_at: Option<DateTime<Utc>>,
    pub(crate) started_at: Option<DateTime<Utc>>,
    pub(crate) finished_at: Option<DateTime<Utc>>,
    pub(crate) worker: Option<i64>,
    pub(crate) result: Option<JsonText>,
    pub(crate) error: Option<String>,
}

impl Job {
    /// A job that has just been enqueued, to be performed at once.
    pub(crate) fn new(id: i64, created_at: DateTime<Utc>, row: &NewRow) -> Self {
        Job {
            id,
            kind: row.kind.to_owned(),
            queue: row.queue.clone(),
            priority: row.priority,
            max_attempts: row.max_attempts,
            unique_key: row.unique_key.clone(),
            created_at,
            args: row.args.clone(),
            state: State {
                status: Status::New,
                attempts: 0,
                uncharged: 0,
                run_at: None,
                started_at: None,
                finished_at: None,
                worker: None,
                result: None,
                error: None,
            },
        }
    }

    /// Finds a job by its id, as one look at the database shows it: its facts and its status together.
    ///
    /// A job that has ended is there until workers prune it, after 7 days if they were not told otherwise; a page that
    /// shows a status should know what to say then.
    ///
    /// ```
    /// # #[cfg(feature = "sqlite")] {
    /// # use diesel::prelude::*;
    /// # use job_core::{Job, JobError, Perform, Run, Status};
    /// # #[derive(serde::Serialize, serde::Deserialize)] struct Charge { order: i64 }
    /// # impl Perform for Charge {
    /// #     const KIND: &'static str = "charge"; type Context = (); type Output = String;
    /// #     fn perform(&self, _: &Run<'_, ()>) -> anyhow::Result<String> { Ok(String::new()) }
    /// # }
    /// # let conn = &mut SqliteConnection::establish(":memory:").unwrap();
    /// # job_core::migrate(conn).unwrap();
    /// # let id = Charge { order: 17 }.enqueue(conn).unwrap().id;
    /// let job = Job::find(conn, id).unwrap();
    /// let page = match job.status() {
    ///     Status::Completed => job.output::<String>().unwrap(),
    ///     Status::Failed | Status::Cancelled => format!("it went wrong: {}", job.last_error().unwrap_or("")),
    ///     Status::Scheduled | Status::New | Status::Processing => "please wait".to_owned(),
    /// };
    /// assert_eq!(page, "please wait");
    /// assert!(matches!(Job::find(conn, 404), Err(JobError::NotFound(404))));
    /// # }
    /// ```
    ///
    /// # Errors
    /// [`JobError::NotFound`], or an error of the database.
    pub fn find<C: JobConnection>(conn: &mut C, id: i64) -> Result<Job, JobError> {
        blocking::look::find(conn, id)
    }

    /// Begins a list of jobs, narrowed by status, queue and kind.
    ///
    /// ```
    /// # #[cfg(feature = "sqlite")] {
    /// # use diesel::prelude::*;
    /// # use job_core::{Job, Status};
    /// # let conn = &mut SqliteConnection::establish(":memory:").unwrap();
    /// # job_core::migrate(conn).unwrap();
    /// let page = Job::filter().status(Status::Failed).queue("mail").limit(50).load(conn).unwrap();
    /// let next = match page.last() {
    ///     Some(last) => Job::filter().status(Status::Failed).queue("mail").before(last.id).load(conn).unwrap(),
    ///     None => Vec::new(),
    /// };
    /// # assert!(next.is_empty());
    /// # }
    /// ```
    pub fn filter() -> JobFilter {
        JobFilter::default()
    }

    /// Enqueues all, or none where there is an error, and gives their ids in the order of the input; for a unique key
    /// that is taken, the id of the job that holds it. Takes jobs, or jobs with options, of any kinds. It needs one round
    /// trip on PostgreSQL, few elsewhere; jobs with a key or a time need some each on MySQL, MariaDB and SQLite.
    ///
    /// ```
    /// # #[cfg(feature = "sqlite")] {
    /// # use diesel::prelude::*;
    /// # use job_core::{Job, Perform, Run};
    /// # #[derive(serde::Serialize, serde::Deserialize)] struct Remind { user: i64 }
    /// # impl Perform for Remind {
    /// #     const KIND: &'static str = "remind"; type Context = (); type Output = ();
    /// #     fn perform(&self, _: &Run<'_, ()>) -> anyhow::Result<()> { Ok(()) }
    /// # }
    /// # let conn = &mut SqliteConnection::establish(":memory:").unwrap();
    /// # job_core::migrate(conn).unwrap();
    /// let ids = Job::enqueue_all(conn, (1..=3).map(|user| Remind { user })).unwrap();
    /// assert_eq!(ids.len(), 3);
    ///
    /// // With options, and one of them twice.
    /// let jobs = [1, 2, 1].map(|user| Remind { user }.job().unique(format!("remind-{user}")));
    /// let ids = Job::enqueue_all(conn, jobs).unwrap();
    /// assert_eq!(ids[0], ids[2]);
    /// # }
    /// ```
    ///
    /// # Errors
    /// See [`EnqueueError`].
    pub fn enqueue_all<C, I, Way>(conn: &mut C, jobs: I) -> Result<Vec<i64>, EnqueueError>
    where
        C: JobConnection,
        I: IntoIterator,
        I::Item: IntoNewJob<Way>,
    {
        blocking::enqueue::all(conn, &NewRow::check_all::<C::Db, _, _>(jobs)?)
    }

    /// Claims the next job that this worker may perform, in a short transaction that locks the job's row, moves it to
    /// `jobs_processing` and commits. `None` where there is none. Perform it, then call
    /// [`ClaimedJob::complete`] or [`ClaimedJob::fail`].
    ///
    /// A program that claims by hand must [`beat`](WorkerRow::beat) for as long as it performs, or its jobs are rescued.
    ///
    /// ```
    /// # #[cfg(feature = "sqlite")] {
    /// # use diesel::prelude::*;
    /// # use job_core::{Job, Perform, Run, Status, WorkerRow};
    /// # #[derive(serde::Serialize, serde::Deserialize)] struct CountWords { text: String }
    /// # impl Perform for CountWords {
    /// #     const KIND: &'static str = "count_words"; type Context = (); type Output = usize;
    /// #     fn perform(&self, _: &Run<'_, ()>) -> anyhow::Result<usize> { Ok(0) }
    /// # }
    /// # let conn = &mut SqliteConnection::establish(":memory:").unwrap();
    /// # job_core::migrate(conn).unwrap();
    /// # let id = CountWords { text: "to and fro".into() }.enqueue(conn).unwrap().id;
    /// let worker = WorkerRow::register(conn, &["default".into()], &["count_words".into()]).unwrap();
    /// while let Some(job) = Job::find_new_job(conn, &worker).unwrap() {
    ///     match job.args::<CountWords>() {
    ///         Ok(args) => job.complete(conn, &args.text.split_whitespace().count()).unwrap(),
    ///         Err(error) => job.fail(conn, &error.to_string()).unwrap(),
    ///     };
    /// }
    /// assert_eq!(Job::find(conn, id).unwrap().output::<usize>().unwrap(), 3);
    /// WorkerRow::unregister(conn, worker.id).unwrap();
    /// # }
    /// ```
    ///
    /// # Errors
    /// [`JobError::InTransaction`], or an error of the database.
    pub fn find_new_job<C: JobConnection>(
        conn: &mut C,
        worker: &WorkerRow,
    ) -> Result<Option<ClaimedJob>, JobError> {
        crate::claim::find_new_job(conn, worker)
    }

    /// The job's status when it was read.
    pub fn status(&self) -> Status {
        self.state.status
    }

    /// How many attempts were charged, the present one included.
    pub fn attempts(&self) -> i32 {
        self.state.attempts - self.state.uncharged
    }

    /// Whether an attempt has failed and another one is to come.
    pub fn is_retrying(&self) -> bool {
        matches!(self.status(), Status::Scheduled | Status::New) && self.state.error.is_some()
    }

    /// When a scheduled job is due.
    pub fn run_at(&self) -> Option<DateTime<Utc>> {
        self.state.run_at
    }

    /// When the present or the last attempt began.
    pub fn started_at(&self) -> Option<DateTime<Utc>> {
        self.state.started_at
    }

    /// When the job ended.
    pub fn finished_at(&self) -> Option<DateTime<Utc>> {
        self.state.finished_at
    }

    /// The id of the worker that performs it, or that ended it.
    pub fn worker(&self) -> Option<i64> {
        self.state.worker
    }

    /// Why the job failed or was cancelled, or what its last failed attempt said.
    pub fn last_error(&self) -> Option<&str> {
        self.state.error.as_deref()
    }

    /// The job's arguments.
    ///
    /// # Errors
    /// [`JobError::Decode`] where they are of another type.
    pub fn args<T: DeserializeOwned>(&self) -> Result<T, JobError> {
        decode(self.id, "arguments", &self.args.0)
    }

    /// The job's arguments as JSON text.
    pub fn args_json(&self) -> &str {
        &self.args.0
    }

    /// The result of a completed job.
    ///
    /// # Errors
    /// [`JobError::NoOutput`] where the job has not completed, [`JobError::Decode`] where the result is of another type.
    pub fn output<T: DeserializeOwned>(&self) -> Result<T, JobError> {
        match (&self.state.result, self.status()) {
            (Some(result), Status::Completed) => decode(self.id, "result", &result.0),
            // An output of `()` is not written.
            (None, Status::Completed) => decode(self.id, "result", "null"),
            (_, status) => Err(JobError::NoOutput { id: self.id, status }),
        }
    }
}

pub(crate) fn decode<T: DeserializeOwned>(id: i64, what: &'static str, json: &str) -> Result<T, JobError> {
    serde_json::from_str(json).map_err(|source| JobError::Decode { id, what, source })
}
