use crate::new_job::Defaults;
use crate::{EnqueueError, Job, JobConnection, NewJob, RunAsync, backoff};
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::time::Duration;

/// A kind of job whose work is mostly waiting for others, such as calls of services: thousands of them are performed at once
/// by a few threads. All that [`Perform`](crate::Perform) says holds here too, and it is enqueued in the same way; only that
/// `perform` is an `async fn`. A worker takes it with `Worker::register_async`, for which `job_worker` has the feature
/// `tokio`.
///
/// A kind is either this or [`Perform`](crate::Perform). Work that computes, or that waits in a function that is not async,
/// holds one of the few threads and all the jobs on it: let it be a [`Perform`](crate::Perform), or use `spawn_blocking`.
///
/// ```
/// use job_core::{PerformAsync, RunAsync};
/// use serde::{Deserialize, Serialize};
/// use std::time::Duration;
///
/// # struct Client;
/// # impl Client { async fn post(&self, _: &str, _: i64) -> anyhow::Result<u16> { Ok(200) } }
/// #[derive(Serialize, Deserialize)]
/// struct CallWebhook { url: String }
///
/// impl PerformAsync for CallWebhook {
///     const KIND: &'static str = "call_webhook";
///     const TIMEOUT: Option<Duration> = Some(Duration::from_secs(30));
///     type Context = Client;
///     type Output = u16;
///
///     async fn perform(&self, run: &RunAsync<Client>) -> anyhow::Result<u16> {
///         run.context().post(&self.url, run.job_id()).await
///     }
/// }
/// ```
///
/// # When the future is dropped
///
/// It is dropped, at the `.await` where it stands, in four cases: at the [`TIMEOUT`](Self::TIMEOUT), which is a failed
/// attempt; where the job was cancelled or rescued, which the worker notices within about a heartbeat; where the worker was
/// declared dead; and at the end of the grace time of a stop, which leaves the job to rescue. What must be undone then
/// belongs in a `Drop`.
pub trait PerformAsync: Serialize + DeserializeOwned + Send + Sync + 'static {
    /// The kind's name in the database, 1 to 255 bytes. Keep it when the struct is renamed.
    const KIND: &'static str;

    /// The queue of a job that does not say otherwise.
    const QUEUE: &'static str = "default";

    /// The priority of a job that does not say otherwise. The lower goes first.
    const PRIORITY: i32 = 0;

    /// How many attempts a job has that does not say otherwise, the first included.
    const MAX_ATTEMPTS: i32 = 12;

    /// Whether a job of this kind is deleted in the moment in which it completes: see
    /// [`Perform::DISCARD_COMPLETED`](crate::Perform::DISCARD_COMPLETED).
    const DISCARD_COMPLETED: bool = false;

    /// How long one attempt may take, from its start; for ever where it is `None`. The attempt fails then, and the future is
    /// dropped.
    const TIMEOUT: Option<Duration> = None;

    /// What the worker shares with its jobs: clients, settings, pools. `()` for nothing.
    type Context: Send + Sync + 'static;

    /// The job's result, kept as JSON and read by [`Job::output`](crate::Job::output).
    type Output: Serialize;

    /// Does the work. An error (or a panic) is a failed attempt, unless it was made by [`cancel`](crate::cancel),
    /// [`snooze`](crate::snooze()) or [`fail_for_good`](crate::fail_for_good). Write it as `async fn perform`.
    ///
    /// # Errors
    /// Whatever went wrong; its text, with its causes, is kept in the job's history.
    fn perform(
        &self,
        run: &RunAsync<Self::Context>,
    ) -> impl Future<Output = anyhow::Result<Self::Output>> + Send;

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

    /// [`enqueue`](Self::enqueue) for [diesel_async](crate::asynchronous).
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
