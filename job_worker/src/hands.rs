use job_core::Ticket;
use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError, TryLockError};

/// The jobs that this worker has claimed and whose outcome it has not recorded, by id, with the number of the attempt.
/// The database may know of more: where the answer to a claim was lost, nobody here knows of the jobs, and the housekeeper
/// hands them back.
#[derive(Debug, Default)]
pub(crate) struct Hands {
    jobs: Mutex<HashMap<i64, i32>>,
    claiming: Mutex<()>,
    /// How often the answer to a claim was lost since it was last known that the database knows of no job that is not here.
    doubts: AtomicU64,
}

impl Hands {
    /// Held from before a claim until its jobs are taken in, so that whoever compares with the database does not take them
    /// for lost.
    pub(crate) fn claiming(&self) -> MutexGuard<'_, ()> {
        self.claiming.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The same for the one who compares, who does not wait: a claim may take as long as the database is away.
    pub(crate) fn while_nobody_claims(&self) -> Option<MutexGuard<'_, ()>> {
        match self.claiming.try_lock() {
            Ok(guard) => Some(guard),
            Err(TryLockError::Poisoned(poisoned)) => Some(poisoned.into_inner()),
            Err(TryLockError::WouldBlock) => None,
        }
    }

    pub(crate) fn raise_doubt(&self) {
        self.doubts.fetch_add(1, Ordering::AcqRel);
    }

    pub(crate) fn doubts(&self) -> u64 {
        self.doubts.load(Ordering::Acquire)
    }

    /// Ends the doubts that there were before somebody saw to them; a later one stays.
    pub(crate) fn settle_doubts(&self, seen: u64) {
        let _ = self
            .doubts
            .compare_exchange(seen, 0, Ordering::AcqRel, Ordering::Acquire);
    }

    pub(crate) fn take(&self, id: i64, attempts: i32) {
        self.jobs().insert(id, attempts);
    }

    pub(crate) fn put_down(&self, id: i64, attempts: i32) {
        let mut jobs = self.jobs();
        // A later claim of the same job may have taken its place.
        if jobs.get(&id) == Some(&attempts) {
            jobs.remove(&id);
        }
    }

    /// Those of the claims that are not in hand.
    pub(crate) fn not_held(&self, tickets: Vec<Ticket>) -> Vec<Ticket> {
        let jobs = self.jobs();
        let is_held = |ticket: &Ticket| jobs.get(&ticket.job_id) == Some(&ticket.attempts);
        tickets.into_iter().filter(|ticket| !is_held(ticket)).collect()
    }

    pub(crate) fn count(&self) -> usize {
        self.jobs().len()
    }

    fn jobs(&self) -> MutexGuard<'_, HashMap<i64, i32>> {
        self.jobs.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
