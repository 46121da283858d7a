use crate::supply::Side;
use job_core::Ticket;
use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard, TryLockError};

/// The jobs that this worker has claimed and whose outcome it has not recorded, by id, with the number of the attempt.
/// The database may know of more: where the answer to a claim was lost, nobody here knows of the jobs, and the housekeeper
/// hands them back.
#[derive(Debug, Default)]
pub(crate) struct Hands {
    held: Mutex<Held>,
    claiming: RwLock<()>,
    /// How often the answer to a claim was lost since it was last known that the database knows of no job that is not here.
    doubts: AtomicU64,
}

#[derive(Debug, Default)]
struct Held {
    jobs: HashMap<i64, (i32, Side)>,
    /// How many of them are to be performed as futures.
    futures: usize,
}

impl Held {
    fn adjust(&mut self, side: Side, change: isize) {
        if side == Side::Futures {
            self.futures = self.futures.saturating_add_signed(change);
        }
    }
}

impl Hands {
    /// Held from before a claim until its jobs are taken in, so that whoever compares with the database does not take them
    /// for lost.
    pub(crate) fn claiming(&self) -> RwLockReadGuard<'_, ()> {
        self.claiming.read().unwrap_or_else(PoisonError::into_inner)
    }

    /// The same for the one who compares, who does not wait: a claim may take as long as the database is away.
    pub(crate) fn while_nobody_claims(&self) -> Option<RwLockWriteGuard<'_, ()>> {
        match self.claiming.try_write() {
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

    pub(crate) fn take(&self, id: i64, attempts: i32, side: Side) {
        let mut held = self.held();
        let before = held.jobs.insert(id, (attempts, side));
        held.adjust(side, 1);
        if let Some((_, side)) = before {
            held.adjust(side, -1);
        }
    }

    pub(crate) fn put_down(&self, id: i64, attempts: i32) {
        let mut held = self.held();
        // A later claim of the same job may have taken its place.
        if let Some(&(current, side)) = held.jobs.get(&id)
            && current == attempts
        {
            held.jobs.remove(&id);
            held.adjust(side, -1);
        }
    }

    /// Those of the claims that are not in hand.
    pub(crate) fn not_held(&self, tickets: Vec<Ticket>) -> Vec<Ticket> {
        let held = self.held();
        let is_held = |ticket: &Ticket| {
            held.jobs
                .get(&ticket.job_id)
                .is_some_and(|(attempts, _)| *attempts == ticket.attempts)
        };
        tickets.into_iter().filter(|ticket| !is_held(ticket)).collect()
    }

    pub(crate) fn count(&self) -> usize {
        self.held().jobs.len()
    }

    pub(crate) fn count_of(&self, side: Side) -> usize {
        let held = self.held();
        match side {
            Side::Threads => held.jobs.len() - held.futures,
            Side::Futures => held.futures,
        }
    }

    fn held(&self) -> MutexGuard<'_, Held> {
        self.held.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_two_sides_are_counted_apart() {
        let hands = Hands::default();
        hands.take(1, 1, Side::Futures);
        hands.take(2, 1, Side::Threads);
        // Another claim of the same job takes its place.
        hands.take(1, 2, Side::Futures);
        hands.put_down(1, 1);
        let counts = || (hands.count_of(Side::Threads), hands.count_of(Side::Futures));
        assert_eq!((counts(), hands.count()), ((1, 1), 2));
        hands.put_down(1, 2);
        hands.put_down(1, 2);
        assert_eq!((counts(), hands.count()), ((1, 0), 1));
    }
}
