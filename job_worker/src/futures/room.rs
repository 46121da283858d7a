use crate::window::{MOST_BYTES, blend};
use job_core::ClaimedJob;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

/// The most jobs of one claim.
const MOST_JOBS: usize = 1_000;

/// How long room may gather while there is little of it, so that claims stay large.
const GATHER: Duration = Duration::from_millis(20);

/// How many more futures there may be. A job takes up room until its outcome is recorded; so a database that is slow to
/// record is not flooded.
#[derive(Debug)]
pub(super) struct Room {
    most: usize,
    /// An average that forgets.
    bytes: AtomicU64,
    claimed: Mutex<Option<Instant>>,
    /// Whether the fetcher waits for room.
    waiting: AtomicBool,
}

impl Room {
    pub(super) fn new(most: usize) -> Self {
        Room {
            most,
            bytes: AtomicU64::new(0),
            claimed: Mutex::new(None),
            waiting: AtomicBool::new(false),
        }
    }

    /// How many jobs to claim now, while so many are held.
    pub(super) fn free(&self, held: impl FnOnce() -> usize, now: Instant) -> usize {
        // Before they are counted: room that comes in between must wake the fetcher.
        self.waiting.store(true, Ordering::SeqCst);
        let free = self.most.saturating_sub(held());
        let claimed = *self.claimed.lock().unwrap_or_else(PoisonError::into_inner);
        let has_gathered = claimed.is_none_or(|at| now.duration_since(at) >= GATHER);
        let by_size = MOST_BYTES / self.bytes.load(Ordering::Relaxed).max(1);
        let room = if free.saturating_mul(4) >= self.most || has_gathered {
            let most = usize::try_from(by_size).unwrap_or(MOST_JOBS).clamp(1, MOST_JOBS);
            free.min(most)
        } else {
            0
        };
        self.waiting.store(room == 0, Ordering::SeqCst);
        room
    }

    pub(super) fn is_awaited(&self) -> bool {
        self.waiting.load(Ordering::SeqCst)
    }

    /// Learns from a claim.
    pub(super) fn claimed(&self, jobs: &[ClaimedJob], now: Instant) {
        *self.claimed.lock().unwrap_or_else(PoisonError::into_inner) = Some(now);
        for job in jobs {
            blend(&self.bytes, job.args.0.len() as u64);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_claim_takes_what_is_free_up_to_a_limit() {
        let (room, now) = (Room::new(5_000), Instant::now());
        assert_eq!(room.free(|| 0, now), MOST_JOBS);
        assert_eq!(room.free(|| 4_600, now), 400);
        assert!(!room.is_awaited());
        assert_eq!(room.free(|| 5_000, now), 0);
        assert!(room.is_awaited());
        assert_eq!(room.free(|| 6_000, now), 0);
    }

    #[test]
    fn a_little_room_gathers_before_it_is_claimed_for() {
        let (room, now) = (Room::new(1_000), Instant::now());
        room.claimed(&[], now);
        assert_eq!(room.free(|| 999, now), 0);
        assert!(room.is_awaited());
        assert_eq!(room.free(|| 750, now), 250);
        assert_eq!(room.free(|| 999, now + GATHER), 1);
    }

    #[test]
    fn large_arguments_make_small_claims() {
        let room = Room::new(5_000);
        room.bytes.store(1 << 20, Ordering::Relaxed);
        assert_eq!(room.free(|| 0, Instant::now()), 2);
        room.bytes.store(1 << 30, Ordering::Relaxed);
        assert_eq!(room.free(|| 0, Instant::now()), 1);
    }
}
