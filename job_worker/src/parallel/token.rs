use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};

/// How far a stop or a halt has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Level {
    /// Go on.
    Running,
    /// Pull no more of the input; what was pulled is still done.
    Soon,
    /// Start nothing more.
    Now,
}

impl Level {
    pub(super) fn of(number: u8) -> Self {
        match number {
            0 => Level::Running,
            1 => Level::Soon,
            _ => Level::Now,
        }
    }
}

/// Stops [`Parallel`](super::Parallel) from another thread, from a callback, or from within an item.
///
/// The first [`stop`](StopToken::stop) ends the feeding: nothing more is pulled from the input, and what was pulled is still
/// done. The second one, from wherever it comes, means *now*: items that were not started are skipped. An item that is being worked on comes to its
/// end in either case, since a Rust thread cannot be killed; let long items look at [`is_stopped`](StopToken::is_stopped).
/// Nor can an input be interrupted that blocks in `next`: the stop is seen when it gives its item.
///
/// Clones are the same token. It is a single atomic number, so that a signal handler may call `stop`.
#[derive(Clone, Debug, Default)]
pub struct StopToken(Arc<AtomicU8>);

impl StopToken {
    /// A token that nobody has stopped yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// Asks for a stop; called again, for a stop now.
    pub fn stop(&self) {
        let next = |level: u8| (level < Level::Now as u8).then_some(level + 1);
        // The only error is that the level was the last one already.
        let _ = self.0.fetch_update(Ordering::AcqRel, Ordering::Acquire, next);
    }

    /// Whether a stop was asked for, once or more.
    pub fn is_stopped(&self) -> bool {
        self.level() > Level::Running
    }

    pub(super) fn level(&self) -> Level {
        Level::of(self.0.load(Ordering::Acquire))
    }
}
