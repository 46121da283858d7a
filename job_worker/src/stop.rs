use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// How far a stop has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Level {
    /// No stop was asked for.
    Running,
    /// Claim no more, start no more, let what runs come to its end.
    Stopping,
    /// Wait no longer.
    Now,
}

/// Stops a worker from another thread: the first call lets running jobs end within the grace time, a second one waits no
/// longer.
#[derive(Clone, Debug)]
pub struct StopHandle(Arc<State>);

#[derive(Debug)]
struct State {
    level: Mutex<Level>,
    raised: Condvar,
    /// Whether a stop was asked for, in the form that jobs look at.
    stopping: AtomicBool,
}

impl StopHandle {
    pub(crate) fn new() -> Self {
        StopHandle(Arc::new(State {
            level: Mutex::new(Level::Running),
            raised: Condvar::new(),
            stopping: AtomicBool::new(false),
        }))
    }

    /// Asks the worker to stop; called again, to stop now.
    pub fn stop(&self) {
        self.raise(|level| match level {
            Level::Running => Level::Stopping,
            _ => Level::Now,
        });
    }

    pub(crate) fn raise_to(&self, level: Level) {
        self.raise(|current| level.max(current));
    }

    fn raise(&self, change: impl FnOnce(Level) -> Level) {
        let mut current = self.lock();
        *current = change(*current);
        self.0
            .stopping
            .store(*current > Level::Running, Ordering::Release);
        self.0.raised.notify_all();
    }

    fn lock(&self) -> MutexGuard<'_, Level> {
        self.0.level.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether a stop was asked for, for jobs.
    pub(crate) fn stopping(&self) -> &AtomicBool {
        &self.0.stopping
    }

    pub(crate) fn level(&self) -> Level {
        *self.lock()
    }

    pub(crate) fn is_running(&self) -> bool {
        self.level() == Level::Running
    }

    /// Waits until the level is reached, at most so long, and gives whether it was.
    pub(crate) fn wait_for(&self, level: Level, timeout: Duration) -> bool {
        let deadline = Instant::now() + timeout;
        let mut current = self.lock();
        while *current < level {
            let left = deadline.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return false;
            }
            current = self
                .0
                .raised
                .wait_timeout(current, left)
                .unwrap_or_else(PoisonError::into_inner)
                .0;
        }
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stop_rises_and_never_falls() {
        let stop = StopHandle::new();
        assert!(stop.is_running() && !stop.wait_for(Level::Stopping, Duration::ZERO));
        stop.stop();
        assert_eq!(stop.level(), Level::Stopping);
        stop.raise_to(Level::Stopping);
        assert_eq!(stop.level(), Level::Stopping);
        stop.stop();
        assert!(stop.wait_for(Level::Now, Duration::ZERO));
        stop.raise_to(Level::Stopping);
        stop.stop();
        assert_eq!(stop.level(), Level::Now);
    }

    #[test]
    fn of_two_who_stop_at_once_one_is_the_second() {
        for _ in 0..200 {
            let stop = StopHandle::new();
            std::thread::scope(|scope| {
                for _ in 0..2 {
                    scope.spawn(|| stop.stop());
                }
            });
            assert_eq!(stop.level(), Level::Now);
        }
    }
}
