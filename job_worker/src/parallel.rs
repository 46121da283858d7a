//! A collection, in parallel: as many threads as you say, fed from one bounded queue, and a report of what came of each item.
//!
//! It needs no job, no table and no database.
//!
//! ```
//! use job_worker::InParallel;
//! use job_worker::parallel::NotDone;
//!
//! let report = ["7", "eleven", "13"].in_parallel_n(2, |text| text.parse::<u32>())?;
//!
//! assert_eq!(report.counts().ok, 2);
//! for (index, why) in report.failures() {
//!     assert_eq!(index, 1);
//!     assert!(matches!(why, NotDone::Failed(_)));
//! }
//! // To go on in spite of failures is for you to say:
//! assert_eq!(report.print_and_ignore(), [7, 13]);
//! # Ok::<(), job_worker::parallel::ParallelError>(())
//! ```
//!
//! # What is guaranteed
//!
//! - **Threads of its own**, named `in_parallel-0` and so on, which are gone when the call returns. They may borrow from
//!   where the call stands. There is no pool that others could block.
//! - **The input is pulled lazily**, by the caller's thread, so that it need not be `Send` and may be endless. At most
//!   [`queue`](Parallel::queue) items and one for each thread are pulled and not finished. An item goes to a thread as soon
//!   as it is pulled; none waits behind a slow one while a thread is free.
//! - **Each item that was pulled has one outcome**: ok, failed, panicked or skipped, with its index in the input. What is
//!   not done is never lost in silence: a [`Report`] must be used.
//! - **It ends**: 0 threads are an error, and when no thread is left the rest is skipped.
//!
//! # Panics
//!
//! A panic in an item is that item's outcome, and the rest go on; so is a panic in its `Drop`. Before that the panic hook is
//! called as always: the default one prints to standard error the name of the thread, the message and the place. A program
//! that is built with `panic = "abort"` ends at the first panic.
//!
//! A panic of the input, of `on_progress` or of the closure of `for_each_outcome` is the caller's own: nothing more is
//! started, what is being worked on comes to its end, and then the panic goes on unwinding out of the call, as from a `for`
//! loop.
//!
//! # Stopping
//!
//! A [`StopToken`] ends the feeding, and stopped twice it skips what was not started; [`Halt`] does the same after so many
//! failures. An item that was started comes to its end in any case: a Rust thread cannot be killed.
//!
//! ```
//! use job_worker::InParallel;
//! use job_worker::parallel::{End, StopToken};
//!
//! let token = StopToken::new();
//! let summary = (1u64..) // an endless input
//!     .in_parallel()
//!     .threads(2)
//!     .stop(&token)
//!     .for_each_outcome(
//!         |number| Ok::<_, std::convert::Infallible>(number * number),
//!         |_index, square| {
//!             // Once is enough: twice would mean now.
//!             if square.is_ok_and(|square| square > 10_000) && !token.is_stopped() {
//!                 token.stop();
//!             }
//!         },
//!     )?;
//! assert_eq!(summary.end(), End::Stopped);
//! # Ok::<(), job_worker::parallel::ParallelError>(())
//! ```
//!
//! # Memory
//!
//! [`run`](Parallel::run) and `in_parallel_n` keep every outcome, since losing some is what they are there to prevent: memory
//! in proportion to the input. [`for_each_outcome`](Parallel::for_each_outcome) keeps counts and the first failures, and
//! needs no more for ten million items than for ten thousand.

mod builder;
mod drive;
mod error;
mod hand;
mod options;
mod outcome;
mod pace;
mod queue;
mod report;
mod run;
mod shared;
mod sink;
mod summary;
mod sync;
mod thread;
mod token;

pub use builder::{NoInit, Parallel, WithInit};
pub use error::{ParallelError, ThreadError};
pub use options::{Halt, Order, Progress};
pub use outcome::{NotDone, Outcome, Panic};
pub use report::Report;
pub use summary::{Counts, End, Summary};
pub use token::StopToken;

/// Gives every iterator, and whatever can be made into one, the methods `in_parallel_n` and `in_parallel`.
pub trait InParallel: IntoIterator + Sized {
    /// Calls the closure with each item on `n` threads, and gives what came of each.
    ///
    /// The defaults are those of [`Parallel`]: a queue about as long as there are threads, no halt, every outcome is kept.
    ///
    /// # Errors
    ///
    /// [`ParallelError::NoThreads`] where `n` is 0. Items that fail stand in the report.
    ///
    /// # Panics
    ///
    /// When the input panics. A panic in an item stands in the report.
    fn in_parallel_n<R, E>(
        self,
        n: usize,
        work: impl Fn(Self::Item) -> Result<R, E> + Sync,
    ) -> Result<Report<R, E>, ParallelError>
    where
        Self::Item: Send,
        R: Send,
        E: Send,
    {
        self.in_parallel().threads(n).run(work)
    }

    /// The same with options.
    fn in_parallel<'a>(self) -> Parallel<'a, Self::IntoIter> {
        Parallel::new(self.into_iter())
    }
}

impl<I: IntoIterator> InParallel for I {}
