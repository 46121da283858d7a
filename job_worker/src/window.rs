use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// For how long the jobs in hand should keep the threads busy: long enough to hide a claim, short enough that a stop hands
/// back little and other workers get their share.
const AHEAD: Duration = Duration::from_millis(50);

/// The most jobs in hand.
const MOST_JOBS: usize = 1_000;

/// The most bytes of arguments and results in hand, by their average size. PostgreSQL gathers what a claim returns, in memory
/// up to `work_mem`, which is 4 MB where nobody said otherwise, and in a file from there on.
pub(crate) const MOST_BYTES: u64 = 2 << 20;

/// How many jobs to have in hand, by how long they took and how large they were.
#[derive(Debug)]
pub(crate) struct Window {
    threads: usize,
    /// Averages that forget: microseconds and bytes per job.
    micros: AtomicU64,
    bytes: AtomicU64,
}

impl Window {
    pub(crate) fn new(threads: usize) -> Self {
        Window {
            threads,
            // Until it is known better, jobs are taken to be slow.
            micros: AtomicU64::new(u64::try_from(AHEAD.as_micros()).unwrap_or(u64::MAX)),
            bytes: AtomicU64::new(0),
        }
    }

    /// Learns from one job.
    pub(crate) fn learn(&self, took: Duration, bytes: usize) {
        let micros = u64::try_from(took.as_micros()).unwrap_or(u64::MAX / 16);
        blend(&self.micros, micros.min(60_000_000));
        blend(&self.bytes, bytes as u64);
    }

    /// Forgets that jobs were fast, since those in hand do not even start.
    pub(crate) fn slow_down(&self) {
        let slow = u64::try_from(AHEAD.as_micros()).unwrap_or(u64::MAX);
        self.micros.fetch_max(slow, Ordering::Relaxed);
    }

    /// How long a job takes on average.
    pub(crate) fn each(&self) -> Duration {
        Duration::from_micros(self.micros.load(Ordering::Relaxed))
    }

    /// How many jobs to have in hand: one per thread where they are slow, more where they are fast and small.
    pub(crate) fn size(&self) -> usize {
        let micros = self.micros.load(Ordering::Relaxed).max(1);
        let per_thread = AHEAD.as_micros() as u64 / micros;
        let by_size = MOST_BYTES / self.bytes.load(Ordering::Relaxed).max(1);
        let most = MOST_JOBS
            .min(usize::try_from(by_size).unwrap_or(MOST_JOBS))
            .max(self.threads);
        let wanted = self
            .threads
            .saturating_mul(usize::try_from(per_thread).unwrap_or(MOST_JOBS));
        wanted.clamp(self.threads, most)
    }
}

/// Moves an average an eighth of the way. A lost update between two threads does not matter.
pub(crate) fn blend(average: &AtomicU64, value: u64) {
    let old = average.load(Ordering::Relaxed);
    average.store((old * 7 + value) / 8, Ordering::Relaxed);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_window_follows_the_jobs() {
        let window = Window::new(4);
        assert_eq!(window.size(), 4);
        for _ in 0..100 {
            window.learn(Duration::from_micros(20), 100);
        }
        assert_eq!(window.size(), MOST_JOBS);
        for _ in 0..100 {
            window.learn(Duration::from_micros(20), 64 << 10);
        }
        assert_eq!(window.size(), 32);
        for _ in 0..100 {
            window.learn(Duration::from_secs(3600), 100);
        }
        assert_eq!(window.size(), 4);
    }

    #[test]
    fn a_window_that_is_slowed_down_is_as_large_as_the_threads() {
        let window = Window::new(4);
        for _ in 0..100 {
            window.learn(Duration::from_micros(20), 100);
        }
        window.slow_down();
        assert_eq!(window.size(), 4);
    }
}
