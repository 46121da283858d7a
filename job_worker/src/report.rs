use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};

/// What a worker did from its start to its end.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Report {
    /// Completed jobs, those that completed in their own transaction included.
    pub completed: u64,
    /// Failed attempts that will be tried again.
    pub retried: u64,
    /// Jobs that ended as failed.
    pub failed: u64,
    /// Jobs that ended themselves as cancelled.
    pub cancelled: u64,
    /// Jobs that asked to be performed later.
    pub snoozed: u64,
    /// Jobs that were handed back unstarted.
    pub released: u64,
    /// Outcomes that were refused, since the job had been rescued or cancelled in the meantime; and async jobs that were
    /// dropped for that.
    pub refused: u64,
    /// Jobs of dead workers that this one took back.
    pub rescued: u64,
    /// Jobs that were still being performed at the deadline of the stop; other workers will rescue them.
    pub abandoned: u64,
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{} completed, {} retried, {} failed, {} cancelled, {} snoozed, {} released, {} refused, {} rescued, \
             {} abandoned",
            self.completed,
            self.retried,
            self.failed,
            self.cancelled,
            self.snoozed,
            self.released,
            self.refused,
            self.rescued,
            self.abandoned
        )
    }
}

/// The report while it is being made.
#[derive(Debug, Default)]
pub(crate) struct Tally {
    pub(crate) completed: AtomicU64,
    pub(crate) retried: AtomicU64,
    pub(crate) failed: AtomicU64,
    pub(crate) cancelled: AtomicU64,
    pub(crate) snoozed: AtomicU64,
    pub(crate) released: AtomicU64,
    pub(crate) refused: AtomicU64,
    pub(crate) rescued: AtomicU64,
}

impl Tally {
    pub(crate) fn report(&self, abandoned: usize) -> Report {
        let read = |count: &AtomicU64| count.load(Ordering::Relaxed);
        Report {
            completed: read(&self.completed),
            retried: read(&self.retried),
            failed: read(&self.failed),
            cancelled: read(&self.cancelled),
            snoozed: read(&self.snoozed),
            released: read(&self.released),
            refused: read(&self.refused),
            rescued: read(&self.rescued),
            abandoned: abandoned as u64,
        }
    }
}

/// Adds to one of the counts.
pub(crate) fn add(count: &AtomicU64, number: usize) {
    count.fetch_add(number as u64, Ordering::Relaxed);
}
