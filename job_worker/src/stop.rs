use std::sync::{Arc, Condvar, Mutex, PoisonError};
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
pub struct StopHandle(Arc<(Mutex<Level>, Condvar)>);

impl StopHandle {
    pub(crate) fn new() -> Self {
        StopHandle(Arc::new((Mutex::new(Level::Running), Condvar::new())))
    }

    /// Asks the worker to stop; called again, to stop now.
    pub fn stop(&self) {
        let mut current = self.0.0.lock().unwrap_or_else(PoisonError::into_inner);
        *current = match *current {
            Level::Running => Level::Stopping,
            _ => Level::Now,
        };
        self.0.1.notify_all();
    }

    pub(crate) fn raise_to(&self, level: Level) {
        let mut current = self.0.0.lock().unwrap_or_else(PoisonError::into_inner);
        *current = level.max(*current);
        self.0.1.notify_all();
    }

    pub(crate) fn level(&self) -> Level {
        *self.0.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn is_running(&self) -> bool {
        self.level() == Level::Running
    }

    /// Waits until the level is reached, at most so long, and gives whether it was.
    pub(crate) fn wait_for(&self, level: Level, timeout: Duration) -> bool {
        let deadline = Instant::now() + timeout;
        let mut current = self.0.0.lock().unwrap_or_else(PoisonError::into_inner);
        while *current < level {
            let left = deadline.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return false;
            }
            current = self
                .0
                .1
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
