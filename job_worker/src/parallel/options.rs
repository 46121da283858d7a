use super::error::ParallelError;
use super::summary::Counts;
use super::token::StopToken;

/// Beyond this a number of threads is a mistake.
pub(super) const MOST_THREADS: usize = 1 << 16;

/// In which order outcomes are told to [`for_each_outcome`](super::Parallel::for_each_outcome). A report is in the order of
/// the input in either case.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Order {
    /// As they come.
    #[default]
    Unordered,
    /// In the order of the input. Outcomes that are early wait, at most as many as the
    /// [`window`](super::Parallel::window) holds: behind a slow item the others go no further ahead.
    Input,
}

/// Whether failures end the whole. Items that fail and items that panic count, threads that fail do not.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Halt {
    /// However many items fail, the rest go on.
    #[default]
    Never,
    /// After so many failures, at least 1, nothing more is pulled from the input; what was pulled is still done.
    Soon {
        /// The number of failures.
        after: usize,
    },
    /// After so many failures, at least 1, nothing more is started: what was pulled and not started is skipped. Items that
    /// are being worked on come to their end, since a Rust thread cannot be killed.
    Now {
        /// The number of failures.
        after: usize,
    },
}

/// How far it has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Progress {
    /// The items that came to an end and were told.
    pub counts: Counts,
    /// How many items the input has, where its `size_hint` knows.
    pub total: Option<usize>,
}

/// What is told now and then.
pub(super) type OnProgress<'a> = Box<dyn FnMut(&Progress) + Send + 'a>;

/// How many outcomes may wait for an earlier one.
const WINDOW: usize = 1_024;

pub(super) struct Options<'a> {
    pub(super) threads: usize,
    /// `None`: as many as threads, and more where the items are quick.
    pub(super) queue: Option<usize>,
    pub(super) order: Order,
    pub(super) window: usize,
    pub(super) halt: Halt,
    pub(super) keep_failures: usize,
    pub(super) stop: StopToken,
    pub(super) on_progress: Option<OnProgress<'a>>,
}

impl Options<'_> {
    pub(super) fn new() -> Self {
        Options {
            threads: std::thread::available_parallelism().map_or(1, usize::from),
            queue: None,
            order: Order::default(),
            window: WINDOW,
            halt: Halt::default(),
            keep_failures: 1_000,
            stop: StopToken::new(),
            on_progress: None,
        }
    }

    pub(super) fn check(&self) -> Result<(), ParallelError> {
        if self.threads == 0 {
            return Err(ParallelError::NoThreads);
        }
        if self.threads > MOST_THREADS {
            return Err(ParallelError::TooManyThreads(self.threads));
        }
        if self.window == 0 {
            return Err(ParallelError::NoWindow);
        }
        match self.halt {
            Halt::Soon { after: 0 } | Halt::Now { after: 0 } => Err(ParallelError::HaltAtStart),
            _ => Ok(()),
        }
    }
}
