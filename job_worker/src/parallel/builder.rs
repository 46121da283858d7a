use super::drive::drive;
use super::error::ParallelError;
use super::options::{Halt, Options, Order, Progress};
use super::outcome::{NotDone, Outcome};
use super::report::Report;
use super::summary::Summary;
use super::thread::Init;
use super::token::StopToken;
use std::error::Error;

/// A collection to be worked on in parallel: [`in_parallel`](super::InParallel::in_parallel) makes it.
///
/// ```
/// use job_worker::InParallel;
/// use job_worker::parallel::{Halt, Order};
///
/// let mut lines = Vec::new();
/// let summary = ["7", "eleven", "13"]
///     .in_parallel()
///     .threads(2)
///     .order(Order::Input)
///     .halt(Halt::Soon { after: 10 })
///     .for_each_outcome(
///         |text: &str| text.parse::<u32>(),
///         |index, outcome| lines.push(format!("{index}: {}", outcome.is_ok())),
///     )?;
///
/// assert_eq!(lines, ["0: true", "1: false", "2: true"]);
/// assert_eq!(summary.counts().failed, 1);
/// # Ok::<(), job_worker::parallel::ParallelError>(())
/// ```
#[must_use = "nothing happens before run or for_each_outcome"]
pub struct Parallel<'a, I, N = NoInit> {
    input: I,
    init: N,
    options: Options<'a>,
}

/// Threads need nothing of their own.
#[derive(Clone, Copy, Debug)]
pub struct NoInit;

/// Each thread gets something of its own from this closure.
#[derive(Clone, Copy, Debug)]
pub struct WithInit<F>(F);

impl<I> Parallel<'_, I> {
    pub(super) fn new(input: I) -> Self {
        Parallel {
            input,
            init: NoInit,
            options: Options::new(),
        }
    }
}

impl<'a, I, N> Parallel<'a, I, N> {
    /// How many threads work, besides the caller's own, which pulls the input. Default: one for each processor. 0 is an
    /// error. There are never more than the input's `size_hint` says it has items.
    pub fn threads(mut self, threads: usize) -> Self {
        self.options.threads = threads;
        self
    }

    /// How many items may wait: at most this many and one for each thread are pulled from the input and not finished. 0 is
    /// allowed: then an item is pulled when a thread is free for it.
    ///
    /// Default: as many as there are threads. Where items take less than 25 µs, handing over costs more than they do: then
    /// as many as are done in about 0.2 ms, at most 2,048 for each thread. Set it where items are quick and large.
    pub fn queue(mut self, items: usize) -> Self {
        self.options.queue = Some(items);
        self
    }

    /// In which order outcomes are told. Default: as they come.
    pub fn order(mut self, order: Order) -> Self {
        self.options.order = order;
        self
    }

    /// With [`Order::Input`], how many items may have been pulled and not told. Default: 1,024. 0 is an error.
    pub fn window(mut self, items: usize) -> Self {
        self.options.window = items;
        self
    }

    /// Whether failures end the whole. Default: never.
    pub fn halt(mut self, halt: Halt) -> Self {
        self.options.halt = halt;
        self
    }

    /// How many items that are not done a [`Summary`] keeps with their errors. Default: 1,000. A [`Report`] keeps all.
    pub fn keep_failures(mut self, items: usize) -> Self {
        self.options.keep_failures = items;
        self
    }

    /// Lets the token stop it.
    pub fn stop(mut self, token: &StopToken) -> Self {
        self.options.stop = token.clone();
        self
    }

    /// Is told now and then how far it has come: after each item where they are slow, after some hundred where they are
    /// quick, and after the last one. It is called by whichever thread has something to tell, by one at a time.
    pub fn on_progress(mut self, tell: impl FnMut(&Progress) + Send + 'a) -> Self {
        self.options.on_progress = Some(Box::new(tell));
        self
    }

    fn all<C, R, E>(
        self,
        init: impl Fn() -> Init<C> + Sync,
        work: impl Fn(&mut C, I::Item) -> Result<R, E> + Sync,
    ) -> Result<Report<R, E>, ParallelError>
    where
        I: Iterator<Item: Send>,
        R: Send,
        E: Send,
    {
        self.options.check()?;
        let mut slots: Vec<Option<Outcome<R, E>>> = Vec::new();
        let ending = drive(self.input, self.options, &init, &work, &mut |index, outcome| {
            if slots.len() <= index {
                slots.resize_with(index + 1, || None);
            }
            slots[index] = Some(outcome);
        });
        Ok(Report {
            // Each index that was pulled has been told.
            outcomes: slots.into_iter().flatten().collect(),
            counts: ending.counts,
            end: ending.end,
            thread_errors: ending.thread_errors,
        })
    }

    fn each<C, R, E>(
        self,
        init: impl Fn() -> Init<C> + Sync,
        work: impl Fn(&mut C, I::Item) -> Result<R, E> + Sync,
        mut tell: impl FnMut(usize, Result<R, &NotDone<E>>) + Send,
    ) -> Result<Summary<E>, ParallelError>
    where
        I: Iterator<Item: Send>,
        R: Send,
        E: Send,
    {
        self.options.check()?;
        let keep = self.options.keep_failures;
        let mut failures = Vec::new();
        let ending = drive(
            self.input,
            self.options,
            &init,
            &work,
            &mut |index, outcome| match outcome {
                Ok(value) => tell(index, Ok(value)),
                Err(why) => {
                    tell(index, Err(&why));
                    if failures.len() < keep {
                        failures.push((index, why));
                    }
                }
            },
        );
        Ok(Summary {
            counts: ending.counts,
            end: ending.end,
            failures,
            thread_errors: ending.thread_errors,
        })
    }
}

impl<'a, I: Iterator<Item: Send>> Parallel<'a, I, NoInit> {
    /// Gives each thread something of its own, such as a connection, which the closure then gets with each item.
    ///
    /// `init` is called once on each thread, before its first item; and again after an item that panicked, since what a
    /// panic leaves behind, such as an open transaction, must not reach the next item. Where it fails or panics, that
    /// thread ends and the others take its share: [`thread_errors`](Report::thread_errors) says why, and the log, as a
    /// warning. When no thread is left, what remains is skipped.
    ///
    /// ```
    /// use diesel::prelude::*;
    /// use job_worker::InParallel;
    ///
    /// # #[cfg(feature = "sqlite")] {
    /// let lengths = ["to", "be", "or not"]
    ///     .in_parallel()
    ///     .threads(2)
    ///     .init(|| SqliteConnection::establish(":memory:"))
    ///     .run(|conn, text| {
    ///         diesel::select(diesel::dsl::sql::<diesel::sql_types::Integer>("length(")
    ///             .bind::<diesel::sql_types::Text, _>(text)
    ///             .sql(")"))
    ///         .get_result::<i32>(conn)
    ///     })
    ///     .unwrap()
    ///     .into_result()
    ///     .unwrap();
    /// assert_eq!(lengths, [2, 2, 6]);
    /// # }
    /// ```
    pub fn init<C, X, F>(self, init: F) -> Parallel<'a, I, WithInit<F>>
    where
        F: Fn() -> Result<C, X> + Sync,
        X: Into<Box<dyn Error + Send + Sync>>,
    {
        Parallel {
            input: self.input,
            init: WithInit(init),
            options: self.options,
        }
    }

    /// Calls the closure with each item and keeps every outcome: see [`Report`] for the memory that this needs.
    ///
    /// # Errors
    ///
    /// Only what [`ParallelError`] lists; items that fail stand in the report.
    ///
    /// # Panics
    ///
    /// When the input or a callback panics: see the [module](super).
    pub fn run<R: Send, E: Send>(
        self,
        work: impl Fn(I::Item) -> Result<R, E> + Sync,
    ) -> Result<Report<R, E>, ParallelError> {
        self.all(|| Ok(()), |(), item| work(item))
    }

    /// Calls the closure with each item and tells each outcome with the item's index, which is all that becomes of the
    /// value. It needs memory for the queue, the window and the failures that are kept, however long the input is.
    ///
    /// `tell` is called by whichever thread has something to tell, by one at a time; while it is called, other threads that
    /// have something to tell wait, so let it be quick.
    ///
    /// # Errors and panics
    ///
    /// As for [`run`](Self::run).
    pub fn for_each_outcome<R: Send, E: Send>(
        self,
        work: impl Fn(I::Item) -> Result<R, E> + Sync,
        tell: impl FnMut(usize, Result<R, &NotDone<E>>) + Send,
    ) -> Result<Summary<E>, ParallelError> {
        self.each(|| Ok(()), |(), item| work(item), tell)
    }
}

impl<I, F, C, X> Parallel<'_, I, WithInit<F>>
where
    I: Iterator<Item: Send>,
    F: Fn() -> Result<C, X> + Sync,
    X: Into<Box<dyn Error + Send + Sync>>,
{
    /// As [`Parallel::run`] without `init`; the closure gets what `init` gave, and the item.
    pub fn run<R: Send, E: Send>(
        self,
        work: impl Fn(&mut C, I::Item) -> Result<R, E> + Sync,
    ) -> Result<Report<R, E>, ParallelError> {
        let (init, rest) = self.split();
        rest.all(|| init().map_err(Into::into), work)
    }

    /// As [`Parallel::for_each_outcome`] without `init`; the closure gets what `init` gave, and the item.
    pub fn for_each_outcome<R: Send, E: Send>(
        self,
        work: impl Fn(&mut C, I::Item) -> Result<R, E> + Sync,
        tell: impl FnMut(usize, Result<R, &NotDone<E>>) + Send,
    ) -> Result<Summary<E>, ParallelError> {
        let (init, rest) = self.split();
        rest.each(|| init().map_err(Into::into), work, tell)
    }
}

impl<'a, I, F> Parallel<'a, I, WithInit<F>> {
    fn split(self) -> (F, Parallel<'a, I, NoInit>) {
        let rest = Parallel {
            input: self.input,
            init: NoInit,
            options: self.options,
        };
        (self.init.0, rest)
    }
}
