use job_core::{ClaimedJob, Connections, JobConnection, Outcome, Perform, Run, Ticket, succeeded};
use std::any::Any;
use std::collections::HashMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::AtomicBool;
use std::time::Duration;

/// Performs one claimed job of a kind, whatever happens, and gives the outcome to record.
type PerformKind<X> = fn(&ClaimedJob, &X, &dyn Connections, &AtomicBool) -> Outcome;

/// The kinds of job that a worker knows.
pub(crate) struct Registry<X> {
    kinds: HashMap<&'static str, PerformKind<X>>,
    pub(crate) duplicate: Option<&'static str>,
    pub(crate) homes: Vec<Home>,
}

/// A kind, and the queue that its jobs go to if not said otherwise.
pub(crate) type Home = (&'static str, &'static str);

impl<X> Registry<X> {
    pub(crate) fn new() -> Self {
        Registry {
            kinds: HashMap::new(),
            duplicate: None,
            homes: Vec::new(),
        }
    }

    pub(crate) fn add<C: JobConnection, J: Perform<Context = X>>(&mut self) {
        if self.kinds.insert(J::KIND, perform_kind::<C, J>).is_some() {
            self.duplicate = Some(J::KIND);
        }
        self.homes.push((J::KIND, J::QUEUE));
    }

    #[cfg(feature = "tokio")]
    pub(crate) fn has(&self, kind: &str) -> bool {
        self.kinds.contains_key(kind)
    }

    /// The kinds' names, sorted.
    pub(crate) fn kinds(&self) -> Vec<String> {
        let mut kinds: Vec<String> = self.kinds.keys().map(|kind| (*kind).to_owned()).collect();
        kinds.sort();
        kinds
    }

    /// Whether no thread is needed.
    pub(crate) fn is_empty(&self) -> bool {
        self.kinds.is_empty()
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
            None => unknown(job),
        }
    }
}

/// Only registered kinds are claimed.
pub(crate) fn unknown(job: &ClaimedJob) -> Outcome {
    Outcome::Failed {
        error: format!("this worker has no job of the kind {}", job.kind),
        delay: job_core::backoff::exponential(job.attempt()),
    }
}

/// Warns of kinds whose jobs this worker will hardly ever see: without a word they would wait for ever.
pub(crate) fn warn_of_other_queues<'a>(homes: impl IntoIterator<Item = &'a Home>, queues: &[String]) {
    for (kind, home) in homes {
        if !queues.iter().any(|queue| queue == home) {
            log::warn!(
                "gatun: jobs of kind {kind} go to the queue {home} if not said otherwise, and this worker looks at \
                 {queues:?} only: add it to queues([…])"
            );
        }
    }
}

fn perform_kind<C: JobConnection, J: Perform>(
    job: &ClaimedJob,
    context: &J::Context,
    connections: &dyn Connections,
    stopping: &AtomicBool,
) -> Outcome {
    let run = Run::new(context, &job.ticket, connections, stopping).discarding(J::DISCARD_COMPLETED);
    // All of the app's own code runs in here: the job, how its arguments are read and its result is written, the text of
    // its error, and what is dropped.
    let performed = catch_unwind(AssertUnwindSafe(|| {
        let performed = job.args().map_err(anyhow::Error::from);
        match performed.and_then(|args: J| args.perform(&run)) {
            Ok(output) => succeeded::<C>(&output, J::DISCARD_COMPLETED),
            Err(error) => Outcome::of_error(&error, Duration::ZERO),
        }
    }));
    let outcome = performed.unwrap_or_else(panicked);
    settle(outcome, &job.ticket, &job.kind, run.is_recorded(), J::retry_delay)
}

/// The outcome of a panic.
pub(crate) fn panicked(payload: Box<dyn Any + Send>) -> Outcome {
    Outcome::Failed {
        error: format!("panicked: {}", message_of(payload)),
        delay: Duration::ZERO,
    }
}

/// The outcome to record: nothing where the attempt has recorded its completion itself, and a failure with the delay that
/// the kind says.
pub(crate) fn settle(
    mut outcome: Outcome,
    ticket: &Ticket,
    kind: &str,
    is_recorded: bool,
    retry_delay: fn(i32) -> Duration,
) -> Outcome {
    if is_recorded {
        if !matches!(outcome, Outcome::Completed(_) | Outcome::Discarded) {
            log::warn!(
                "gatun: job {} ({kind}) failed after it had completed in its own transaction; it stays completed",
                ticket.job_id
            );
        }
        return Outcome::Recorded;
    }
    if let Outcome::Failed { delay, .. } = &mut outcome {
        // Where that panics, the usual backoff.
        *delay = catch_unwind(|| retry_delay(ticket.charged())).unwrap_or_else(|payload| {
            message_of(payload);
            job_core::backoff::exponential(ticket.charged())
        });
    }
    outcome
}

/// The text that a panic was given; drops its payload, which may panic too.
pub(crate) fn message_of(payload: Box<dyn Any + Send>) -> String {
    let message = payload
        .downcast_ref::<&str>()
        .map(|text| (*text).to_owned())
        .or_else(|| payload.downcast_ref::<String>().cloned())
        .unwrap_or_else(|| "(no message)".to_owned());
    if let Err(payload) = catch_unwind(AssertUnwindSafe(|| drop(payload))) {
        std::mem::forget(payload);
    }
    message
}
