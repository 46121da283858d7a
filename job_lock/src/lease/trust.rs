use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant, SystemTime};

/// A point in time by two clocks. The monotonic one stands still while the machine sleeps, at least on Linux; the other may
/// be set, in either direction. So what has passed is the longer of the two.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Moment {
    monotonic: Instant,
    wall: SystemTime,
}

impl Moment {
    pub(crate) fn now() -> Self {
        Self {
            monotonic: Instant::now(),
            wall: SystemTime::now(),
        }
    }

    fn elapsed(&self) -> Duration {
        self.elapsed_at(Self::now())
    }

    fn elapsed_at(&self, now: Self) -> Duration {
        let wall = now.wall.duration_since(self.wall).unwrap_or_default();
        now.monotonic.duration_since(self.monotonic).max(wall)
    }
}

/// How long a lease may be trusted without asking the database.
#[derive(Debug)]
pub(crate) struct Trust {
    /// The start of the last attempt that the database has confirmed; the lease lasts at least from then.
    confirmed: Mutex<Moment>,
    window: Duration,
    lost: AtomicBool,
}

impl Trust {
    pub(crate) fn new(start: Moment, window: Duration) -> Self {
        Self {
            confirmed: Mutex::new(start),
            window,
            lost: AtomicBool::new(false),
        }
    }

    /// The database has confirmed an attempt that started then.
    pub(crate) fn confirm(&self, start: Moment) {
        let mut confirmed = self.confirmed.lock().unwrap_or_else(PoisonError::into_inner);
        if start.monotonic > confirmed.monotonic {
            *confirmed = start;
        }
    }

    /// It is another's, or is to count as such; that never changes back.
    pub(crate) fn lose(&self) {
        self.lost.store(true, Ordering::SeqCst);
    }

    pub(crate) fn is_lost_for_good(&self) -> bool {
        self.lost.load(Ordering::SeqCst)
    }

    pub(crate) fn left(&self) -> Duration {
        if self.is_lost_for_good() {
            return Duration::ZERO;
        }
        let confirmed = *self.confirmed.lock().unwrap_or_else(PoisonError::into_inner);
        self.window.saturating_sub(confirmed.elapsed())
    }

    pub(crate) fn is_over(&self) -> bool {
        self.left().is_zero()
    }
}

#[cfg(test)]
mod tests {
    use super::{Moment, Trust};
    use std::time::Duration;

    const HOUR: Duration = Duration::from_secs(3600);

    #[test]
    fn time_that_the_machine_slept_counts() {
        let then = Moment::now();
        let woken = Moment {
            wall: then.wall + HOUR,
            ..then
        };
        assert_eq!(then.elapsed_at(woken), HOUR);
    }

    #[test]
    fn a_wall_clock_that_is_set_back_gives_no_time() {
        let then = Moment::now();
        let later = Moment {
            monotonic: then.monotonic + HOUR,
            wall: then.wall - HOUR,
        };
        assert_eq!(then.elapsed_at(later), HOUR);
    }

    #[test]
    fn trust_counts_from_the_start_of_what_was_confirmed() {
        let now = Moment::now();
        let old = Moment {
            wall: now.wall - HOUR,
            ..now
        };
        let trust = Trust::new(old, HOUR);
        assert!(trust.is_over());
        trust.confirm(Moment::now());
        assert!(!trust.is_over());
        trust.lose();
        trust.confirm(Moment::now());
        assert!(trust.is_over());
    }
}
