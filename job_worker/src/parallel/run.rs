use super::builder::{NoInit, Parallel, WithInit};
use super::drive::drive;
use super::error::ParallelError;
use super::outcome::{NotDone, Outcome};
use super::report::Report;
use super::summary::Summary;
use super::thread::Init;
use std::error::Error;

impl<I: Iterator<Item: Send>> Parallel<'_, I, NoInit> {
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

impl<I: Iterator<Item: Send>> Parallel<'_, I, NoInit> {
    fn all<C, R, E>(
        self,
        init: impl Fn() -> Init<C> + Sync,
        work: impl Fn(&mut C, I::Item) -> Result<R, E> + Sync,
    ) -> Result<Report<R, E>, ParallelError>
    where
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
