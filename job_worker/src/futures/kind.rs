use crate::registry::{message_of, panicked, settle};
use job_core::{BoxFuture, ClaimedJob, JobConnection, Outcome, PerformAsync, RunAsync, succeeded};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;
use tokio::time::timeout;

/// Performs one claimed job of a kind, whatever happens, and gives the outcome to record.
pub(super) type PerformKind<X> = fn(ClaimedJob, RunAsync<X>) -> BoxFuture<'static, Outcome>;

pub(super) fn perform_kind<C: JobConnection, J: PerformAsync>(
    job: ClaimedJob,
    run: RunAsync<J::Context>,
) -> BoxFuture<'static, Outcome> {
    Box::pin(async move {
        let (ticket, kind) = (job.ticket.clone(), job.kind.clone());
        let run = run.discarding(J::DISCARD_COMPLETED);
        let performed = Guarded::new(perform::<C, J>(job, run.clone()));
        let outcome = match J::TIMEOUT {
            None => performed.await,
            Some(limit) => timeout(limit, performed)
                .await
                .unwrap_or_else(|_| Outcome::Failed {
                    error: format!("timed out after {limit:?}"),
                    delay: Duration::ZERO,
                }),
        };
        settle(outcome, &ticket, &kind, run.is_recorded(), J::retry_delay)
    })
}

/// All of the app's own code runs in here: the job, how its arguments are read and its result is written, the text of its
/// error, and what is dropped.
async fn perform<C: JobConnection, J: PerformAsync>(job: ClaimedJob, run: RunAsync<J::Context>) -> Outcome {
    let args = job.args::<J>();
    // Thousands of them stand here for long.
    drop(job);
    let args = match args {
        Ok(args) => args,
        Err(error) => return Outcome::of_error(&error.into(), Duration::ZERO),
    };
    match args.perform(&run).await {
        Ok(output) => succeeded::<C>(&output, J::DISCARD_COMPLETED),
        Err(error) => Outcome::of_error(&error, Duration::ZERO),
    }
}

/// A future whose panic is its outcome, also one while it is dropped.
struct Guarded<F: Future<Output = Outcome>>(Option<Pin<Box<F>>>);

impl<F: Future<Output = Outcome>> Guarded<F> {
    fn new(future: F) -> Self {
        Guarded(Some(Box::pin(future)))
    }
}

impl<F: Future<Output = Outcome>> Future for Guarded<F> {
    type Output = Outcome;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Outcome> {
        let Some(future) = &mut self.0 else {
            return Poll::Pending;
        };
        let polled = catch_unwind(AssertUnwindSafe(|| future.as_mut().poll(context)));
        polled.unwrap_or_else(|payload| Poll::Ready(panicked(payload)))
    }
}

impl<F: Future<Output = Outcome>> Drop for Guarded<F> {
    fn drop(&mut self) {
        let future = self.0.take();
        if let Err(payload) = catch_unwind(AssertUnwindSafe(|| drop(future))) {
            log::warn!(
                "gatun: an async job panicked while it was dropped: {}",
                message_of(payload)
            );
        }
    }
}
