use super::outcome::Panic;
use std::error::Error;

/// Options with which nothing could be done. Nothing was pulled from the input and no thread was started.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ParallelError {
    /// There is no thread to do anything.
    #[error("0 threads can do nothing: choose at least 1")]
    NoThreads,
    /// No system gives so many threads.
    #[error("{0} threads are more than any system gives: choose at most {most}", most = super::options::MOST_THREADS)]
    TooManyThreads(usize),
    /// No outcome may be waited for, so that none can be told in the order of the input.
    #[error("a window of 0 items holds none: choose at least 1")]
    NoWindow,
    /// The halt would come before the first failure.
    #[error("a halt after 0 failures comes before the first item: choose at least 1")]
    HaltAtStart,
}

/// Why a thread did not start, or ended early. The other threads take its share.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ThreadError {
    /// The system gave no thread.
    #[error("the system gave no thread: {0}")]
    NotSpawned(#[source] std::io::Error),
    /// The closure given to `init` said no.
    #[error("init failed: {0}")]
    InitFailed(#[source] Box<dyn Error + Send + Sync>),
    /// The closure given to `init` panicked.
    #[error("init panicked: {0}")]
    InitPanicked(Panic),
    /// What `init` had made panicked when it was dropped.
    #[error("dropping what init had made panicked: {0}")]
    DropPanicked(Panic),
}
