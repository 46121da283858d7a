use crate::options::jittered;
use std::time::{Duration, Instant};

/// A task that comes up now and then.
pub(super) struct Timer {
    every: Duration,
    next: Instant,
}

impl Timer {
    pub(super) fn new(every: Duration) -> Self {
        Timer {
            every,
            next: Instant::now() + jittered(every),
        }
    }

    pub(super) fn is_up(&mut self) -> bool {
        let up = Instant::now() >= self.next;
        if up {
            self.next = Instant::now() + jittered(self.every);
        }
        up
    }

    pub(super) fn hurry(&mut self) {
        self.next = Instant::now();
    }
}
