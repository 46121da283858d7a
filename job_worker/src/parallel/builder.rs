use super::options::{Halt, Options, Order, Progress};
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
    pub(super) input: I,
    init: N,
    pub(super) options: Options<'a>,
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

    /// How many items that are not done a [`Summary`](super::Summary) keeps with their errors. Default: 1,000. A [`Report`](super::Report) keeps all.
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
}

impl<'a, I: Iterator<Item: Send>> Parallel<'a, I, NoInit> {
    /// Gives each thread something of its own, such as a connection, which the closure then gets with each item.
    ///
    /// `init` is called once on each thread, before its first item; and again after an item that panicked, since what a
    /// panic leaves behind, such as an open transaction, must not reach the next item. Where it fails or panics, that
    /// thread ends and the others take its share: [`thread_errors`](super::Report::thread_errors) says why, and the log, as a
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
}

impl<'a, I, F> Parallel<'a, I, WithInit<F>> {
    /// Takes `init` apart from the rest.
    pub(super) fn split(self) -> (F, Parallel<'a, I, NoInit>) {
        let rest = Parallel {
            input: self.input,
            init: NoInit,
            options: self.options,
        };
        (self.init.0, rest)
    }
}
