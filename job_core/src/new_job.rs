use crate::limits::{self, MAX_ARGS_BYTES, MAX_ATTEMPTS, MAX_PRIORITY};
use crate::outcome::When;
use crate::verbs::blocking;
use crate::{EnqueueError, Job, JobConnection, Perform, PerformAsync};
use chrono::{DateTime, Utc};
use job_db::{Database, JsonText};
use serde::Serialize;
use std::time::Duration;

/// A job that is not enqueued yet, with its options. Made by [`Perform::job`] and [`PerformAsync::job`].
///
/// ```
/// # #[cfg(feature = "sqlite")] {
/// # use job_core::{Perform, Run, Status};
/// # use std::time::Duration;
/// # use diesel::prelude::*;
/// # #[derive(serde::Serialize, serde::Deserialize)] struct Remind { user: i64 }
/// # impl Perform for Remind {
/// #     const KIND: &'static str = "remind"; type Context = (); type Output = ();
/// #     fn perform(&self, _: &Run<'_, ()>) -> anyhow::Result<()> { Ok(()) }
/// # }
/// # let conn = &mut SqliteConnection::establish(":memory:").unwrap();
/// # job_core::migrate(conn).unwrap();
/// let job = Remind { user: 7 }
///     .job()
///     .queue("mail")
///     .priority(-5)
///     .run_in(Duration::from_secs(600))
///     .unique("remind-7")
///     .max_attempts(3)
///     .enqueue(conn)
///     .unwrap();
/// assert_eq!(job.status(), Status::Scheduled);
///
/// // A second one with the same key gives the existing job.
/// let twin = Remind { user: 7 }.job().unique("remind-7").enqueue(conn).unwrap();
/// assert_eq!(twin.id, job.id);
/// # }
/// ```
#[derive(Debug)]
#[must_use = "a job that is not enqueued is never performed"]
pub struct NewJob {
    kind: &'static str,
    queue: String,
    priority: i32,
    max_attempts: i32,
    max_args_bytes: usize,
    args: Result<String, serde_json::Error>,
    unique_key: Option<String>,
    when: Option<When>,
}

/// What a kind says of its jobs that do not say otherwise.
pub(crate) struct Defaults {
    pub(crate) kind: &'static str,
    pub(crate) queue: &'static str,
    pub(crate) priority: i32,
    pub(crate) max_attempts: i32,
}

impl<P: Perform> From<P> for NewJob {
    fn from(job: P) -> Self {
        job.job()
    }
}

/// What [`Job::enqueue_all`] takes: jobs of a kind that is [`Perform`] or [`PerformAsync`], and jobs with options.
///
/// The compiler finds `Way`, which tells it that a type is one or the other.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a job that can be enqueued",
    note = "implement `Perform` or `PerformAsync` for it"
)]
pub trait IntoNewJob<Way> {
    /// The job with its options.
    fn into_new_job(self) -> NewJob;
}

/// The [`IntoNewJob`] of [`Perform`] and of jobs with options.
#[derive(Debug)]
pub enum OnThread {}

/// The [`IntoNewJob`] of [`PerformAsync`].
#[derive(Debug)]
pub enum OnRuntime {}

impl<T: Into<NewJob>> IntoNewJob<OnThread> for T {
    fn into_new_job(self) -> NewJob {
        self.into()
    }
}

impl<P: PerformAsync> IntoNewJob<OnRuntime> for P {
    fn into_new_job(self) -> NewJob {
        self.job()
    }
}

impl NewJob {
    pub(crate) fn of(job: &impl Serialize, defaults: Defaults) -> Self {
        NewJob {
            kind: defaults.kind,
            queue: defaults.queue.to_owned(),
            priority: defaults.priority,
            max_attempts: defaults.max_attempts,
            max_args_bytes: MAX_ARGS_BYTES,
            args: serde_json::to_string(job),
            unique_key: None,
            when: None,
        }
    }

    /// The queue, 1 to 255 bytes.
    pub fn queue(mut self, queue: impl Into<String>) -> Self {
        self.queue = queue.into();
        self
    }

    /// The priority within the queue; the lower goes first. Jobs of one priority go in the order of their ids.
    pub fn priority(mut self, priority: i32) -> Self {
        self.priority = priority;
        self
    }

    /// Not before this time, by the database's clock. A time that has passed means at once.
    pub fn run_at(mut self, time: DateTime<Utc>) -> Self {
        self.when = Some(When::At(time));
        self
    }

    /// Not before so long from now, by the database's clock.
    pub fn run_in(mut self, delay: Duration) -> Self {
        self.when = Some(When::In(delay));
        self
    }

    /// How many attempts, the first included: 1 to 1000.
    pub fn max_attempts(mut self, max_attempts: i32) -> Self {
        self.max_attempts = max_attempts;
        self
    }

    /// Lets only one job with this key, 1 to 255 bytes, be waiting or performed at a time, whatever its kind and queue.
    /// Enqueueing another gives the existing one. If the key is held by a transaction that has not ended, enqueueing
    /// waits for its end. On MySQL and MariaDB, a transaction that has enqueued a duplicate of a job that is being performed holds
    /// up its worker, as [`Job::cancel`] does.
    pub fn unique(mut self, key: impl Into<String>) -> Self {
        self.unique_key = Some(key.into());
        self
    }

    /// Another limit for the arguments than 1 MiB of JSON.
    pub fn max_args_bytes(mut self, max: usize) -> Self {
        self.max_args_bytes = max;
        self
    }

    /// Enqueues the job on the caller's connection, in its transaction if one is open.
    ///
    /// # Errors
    /// See [`EnqueueError`].
    pub fn enqueue<C: JobConnection>(self, conn: &mut C) -> Result<Job, EnqueueError> {
        blocking::enqueue::one(conn, self.check::<C::Db>()?)
    }

    /// Checks every limit, before anything is written.
    pub(crate) fn check<DB: Database>(self) -> Result<NewRow, EnqueueError> {
        let kind = self.kind;
        limits::check_name("kind", kind)?;
        limits::check_name("queue", &self.queue)?;
        if let Some(key) = &self.unique_key {
            limits::check_name("unique key", key)?;
        }
        if !(1..=MAX_ATTEMPTS).contains(&self.max_attempts) {
            return Err(EnqueueError::BadMaxAttempts(self.max_attempts));
        }
        if !(-MAX_PRIORITY..=MAX_PRIORITY).contains(&self.priority) {
            return Err(EnqueueError::BadPriority(self.priority));
        }
        match self.when {
            Some(When::At(time)) => limits::check_run_at(time)?,
            Some(When::In(delay)) => limits::check_run_in(delay)?,
            None => {}
        }
        let args = self
            .args
            .map_err(|source| EnqueueError::Encode { kind, source })?;
        if args.len() > self.max_args_bytes {
            return Err(EnqueueError::ArgsTooLong {
                kind,
                bytes: args.len(),
                max: self.max_args_bytes,
            });
        }
        if limits::json_is_too_deep(&args) {
            return Err(EnqueueError::ArgsTooDeep { kind });
        }
        if limits::json_has_huge_number(&args) {
            return Err(EnqueueError::HugeNumberInArgs { kind });
        }
        if !DB::JSON_HOLDS_NUL && limits::json_has_nul(&args) {
            return Err(EnqueueError::NulInArgs {
                kind,
                database: DB::NAME,
            });
        }
        Ok(NewRow {
            kind,
            queue: self.queue,
            priority: self.priority,
            max_attempts: self.max_attempts,
            args: JsonText(args),
            unique_key: self.unique_key,
            when: self.when,
        })
    }
}

/// A job that has passed every check.
#[derive(Debug)]
pub struct NewRow {
    pub(crate) kind: &'static str,
    pub(crate) queue: String,
    pub(crate) priority: i32,
    pub(crate) max_attempts: i32,
    pub(crate) args: JsonText,
    pub(crate) unique_key: Option<String>,
    pub(crate) when: Option<When>,
}

impl NewRow {
    /// Checks all, before anything is written.
    pub(crate) fn check_all<DB, I, Way>(jobs: I) -> Result<Vec<NewRow>, EnqueueError>
    where
        DB: Database,
        I: IntoIterator,
        I::Item: IntoNewJob<Way>,
    {
        jobs.into_iter()
            .map(|job| job.into_new_job().check::<DB>())
            .collect()
    }
}

/// Microseconds, as the statements want them; a delay that is longer than every database can add to now is cut.
pub(crate) fn micros(delay: Duration) -> i64 {
    i64::try_from(delay.min(limits::LONGEST_RUN_IN).as_micros()).unwrap_or(i64::MAX)
}
