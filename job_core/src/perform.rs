use crate::new_job::Defaults;
use crate::{EnqueueError, Job, JobConnection, NewJob, Run, backoff};
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::time::Duration;

/// A kind of job: a struct whose fields are the job's arguments, and what to do with them.
///
/// The arguments are kept as JSON; so a field may be added with `#[serde(default)]` while jobs of the old shape are
/// waiting. A job is performed **at least once**: after a crash it is performed again. Effects in the database happen
/// exactly once with [`Run::transaction`]; for effects outside it, send a key that the other side uses to recognise a
/// repetition.
///
/// Each job has a thread while it is performed. For jobs that do little but wait for others there is
/// [`PerformAsync`](crate::PerformAsync).
///
/// ```
/// use job_core::{Perform, Run};
/// use serde::{Deserialize, Serialize};
///
/// #[derive(Serialize, Deserialize)]
/// struct CountWords { text: String }
///
/// impl Perform for CountWords {
///     const KIND: &'static str = "count_words";
///     type Context = ();
///     type Output = usize;
///
///     fn perform(&self, _run: &Run<'_, ()>) -> anyhow::Result<usize> {
///         Ok(self.text.split_whitespace().count())
///     }
/// }
/// ```
#[diagnostic::on_unimplemented(
    message = "`{Self}` is no kind of job that is performed on a thread",
    note = "an async kind, one with `PerformAsync`, is registered with `register_async`: enable job_worker's feature `tokio`"
)]
pub trait Perform: Serialize + DeserializeOwned + Send + 'static {
    /// The kind's name in the database, 1 to 255 bytes. Keep it when the struct is renamed.
    const KIND: &'static str;

    /// The queue of a job that does not say otherwise.
    const QUEUE: &'static str = "default";

    /// The priority of a job that does not say otherwise. The lower goes first.
    const PRIORITY: i32 = 0;

    /// How many attempts a job has that does not say otherwise, the first included.
    const MAX_ATTEMPTS: i32 = 12;

    /// Whether a job of this kind is deleted, with its result and its history, in the moment in which it completes; failed
    /// and cancelled ones stay. Then [`Job::find`](crate::Job::find) does not find it, so it is for jobs that nobody asks
    /// about.
    const DISCARD_COMPLETED: bool = false;

    /// What the worker shares with its jobs: clients, settings, pools. `()` for nothing.
    type Context: Send + Sync + 'static;

    /// The job's result, kept as JSON and read by [`Job::output`](crate::Job::output).
    type Output: Serialize;

    /// Does the work. An error (or a panic) is a failed attempt, unless it was made by [`cancel`](crate::cancel),
    /// [`snooze`](crate::snooze()) or [`fail_for_good`](crate::fail_for_good).
    ///
    /// # Errors
    /// Whatever went wrong; its text, with its causes, is kept in the job's history.
    fn perform(&self, run: &Run<'_, Self::Context>) -> anyhow::Result<Self::Output>;

    /// How long to wait after failed attempt number `attempt`, from 1: [`backoff::exponential`] by default.
    fn retry_delay(attempt: i32) -> Duration {
        backoff::exponential(attempt)
    }

    /// The job, to be given options before it is enqueued.
    fn job(&self) -> NewJob {
        let defaults = Defaults {
            kind: Self::KIND,
            queue: Self::QUEUE,
            priority: Self::PRIORITY,
            max_attempts: Self::MAX_ATTEMPTS,
        };
        NewJob::of(self, defaults)
    }

    /// Enqueues the job on the caller's connection, in its transaction if one is open.
    ///
    /// # Errors
    /// See [`EnqueueError`].
    fn enqueue<C: JobConnection>(&self, conn: &mut C) -> Result<Job, EnqueueError> {
        self.job().enqueue(conn)
    }

    /// Enqueues the job on the caller's connection, in its transaction if one is open: [`enqueue`](Self::enqueue) for
    /// [diesel_async](crate::asynchronous).
    ///
    /// # Errors
    /// See [`EnqueueError`].
    #[cfg(feature = "diesel_async")]
    fn enqueue_async<C: crate::AsyncJobConnection>(
        &self,
        conn: &mut C,
    ) -> impl Future<Output = Result<Job, EnqueueError>> + Send {
        self.job().enqueue_async(conn)
    }
}
