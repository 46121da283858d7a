use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum State {
    #[default]
    Going,
    Paused,
    Stopped,
}

/// Pauses and stops a run from another thread, such as one that waits for signals. Both come into effect when the
/// batches under way are committed. Clones are the same control.
#[derive(Clone, Debug, Default)]
pub struct Control(Arc<(Mutex<State>, Condvar)>);

impl Control {
    /// A control that lets go on.
    pub fn new() -> Self {
        Self::default()
    }

    /// Starts no more batches until [`resume`](Self::resume).
    pub fn pause(&self) {
        self.change(State::Going, State::Paused);
    }

    /// Goes on after a [`pause`](Self::pause).
    pub fn resume(&self) {
        self.change(State::Paused, State::Going);
    }

    /// Starts no more batches. There is no way back.
    pub fn stop(&self) {
        *self.state() = State::Stopped;
        self.0.1.notify_all();
    }

    /// Whether [`stop`](Self::stop) was called.
    pub fn is_stopped(&self) -> bool {
        *self.state() == State::Stopped
    }

    pub(crate) fn is_paused(&self) -> bool {
        *self.state() == State::Paused
    }

    /// Lets time pass; `false` means stop.
    pub(crate) fn sleep(&self, time: Duration) -> bool {
        let start = Instant::now();
        let mut state = self.state();
        while *state != State::Stopped {
            let left = time.saturating_sub(start.elapsed());
            if left.is_zero() {
                return true;
            }
            let waited = self.0.1.wait_timeout(state, left);
            state = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
        false
    }

    fn change(&self, from: State, to: State) {
        let mut state = self.state();
        if *state == from {
            *state = to;
        }
        self.0.1.notify_all();
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
