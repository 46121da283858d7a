use job_core::{ClaimedJob, Connections, JobConnection, Outcome, Perform, Run, completed};
use std::any::Any;
use std::collections::HashMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::AtomicBool;

/// Performs one claimed job of a kind, whatever happens, and gives the outcome to record.
type PerformKind<X> = fn(&ClaimedJob, &X, &dyn Connections, &AtomicBool) -> Outcome;

/// The kinds of job that a worker knows.
pub(crate) struct Registry<X> {
    kinds: HashMap<&'static str, PerformKind<X>>,
    pub(crate) duplicate: Option<&'static str>,
}

impl<X: Send + Sync + 'static> Registry<X> {
    pub(crate) fn new() -> Self {
        Registry {
            kinds: HashMap::new(),
            duplicate: None,
        }
    }

    pub(crate) fn add<C: JobConnection, J: Perform<Context = X>>(&mut self) {
        if self.kinds.insert(J::KIND, perform_kind::<C, J>).is_some() {
            self.duplicate = Some(J::KIND);
        }
    }

    /// The kinds' names, sorted.
    pub(crate) fn kinds(&self) -> Vec<String> {
        let mut kinds: Vec<String> = self.kinds.keys().map(|kind| (*kind).to_owned()).collect();
        kinds.sort();
        kinds
    }

    pub(crate) fn perform(
        &self,
        job: &ClaimedJob,
        context: &X,
        connections: &dyn Connections,
        stopping: &AtomicBool,
    ) -> Outcome {
        match self.kinds.get(job.kind.as_str()) {
            Some(perform) => perform(job, context, connections, stopping),
            // Only registered kinds are claimed.
            None => Outcome::Failed {
                error: format!("this worker has no job of the kind {}", job.kind),
                delay: job_core::backoff::exponential(job.attempt()),
            },
        }
    }
}

fn perform_kind<C: JobConnection, J: Perform>(
    job: &ClaimedJob,
    context: &J::Context,
    connections: &dyn Connections,
    stopping: &AtomicBool,
) -> Outcome {
    let run = Run::new(context, &job.ticket, connections, stopping);
    let performed = catch_unwind(AssertUnwindSafe(|| {
        let args: J = job.args()?;
        args.perform(&run)
    }));
    if run.is_recorded() {
        if !matches!(performed, Ok(Ok(_))) {
            log::warn!(
                "gatun: job {} ({}) failed after it had completed in its own transaction; it stays completed",
                job.id(),
                job.kind
            );
        }
        return Outcome::Recorded;
    }
    // The user's own code may panic too.
    let delay = || {
        catch_unwind(|| J::retry_delay(job.attempt()))
            .unwrap_or_else(|_| job_core::backoff::exponential(job.attempt()))
    };
    match performed {
        Ok(Ok(output)) => completed::<C>(&output),
        Ok(Err(error)) => Outcome::of_error(&error, delay()),
        Err(payload) => Outcome::Failed {
            error: format!("panicked: {}", panic_message(payload.as_ref())),
            delay: delay(),
        },
    }
}

fn panic_message(payload: &(dyn Any + Send)) -> &str {
    payload
        .downcast_ref::<&str>()
        .copied()
        .or_else(|| payload.downcast_ref::<String>().map(String::as_str))
        .unwrap_or("(no message)")
}
