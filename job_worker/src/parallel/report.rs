use super::error::ThreadError;
use super::outcome::{NotDone, Outcome};
use super::summary::{Counts, End, Summary};
use std::fmt;
use std::io::{self, Write};

/// What came of each item.
///
/// Every item that was pulled from the input has its outcome here, at its index in the input. What to do about those that
/// are not done is for the caller to say: [`into_result`](Report::into_result) makes them an error,
/// [`print_and_ignore`](Report::print_and_ignore) prints them, [`ignore_failures`](Report::ignore_failures) drops them.
///
/// It needs memory in proportion to the input: `size_of::<Outcome<R, E>>()` bytes for each item, and what the values own.
/// For large and for endless inputs there is [`for_each_outcome`](super::Parallel::for_each_outcome).
#[must_use = "failures are lost where nobody looks at the report"]
#[derive(Debug)]
pub struct Report<R, E> {
    pub(super) outcomes: Vec<Outcome<R, E>>,
    pub(super) counts: Counts,
    pub(super) end: End,
    pub(super) thread_errors: Vec<ThreadError>,
}

impl<R, E> Report<R, E> {
    /// The outcomes, each at its item's index in the input.
    pub fn outcomes(&self) -> &[Outcome<R, E>] {
        &self.outcomes
    }

    /// The same, to take them out.
    pub fn into_outcomes(self) -> Vec<Outcome<R, E>> {
        self.outcomes
    }

    /// The values of the items that are ok, each with its index in the input.
    pub fn values(&self) -> impl Iterator<Item = (usize, &R)> {
        let outcomes = self.outcomes.iter().enumerate();
        outcomes.filter_map(|(index, outcome)| Some((index, outcome.as_ref().ok()?)))
    }

    /// The items that are not done, each with its index in the input.
    pub fn failures(&self) -> impl Iterator<Item = (usize, &NotDone<E>)> {
        let outcomes = self.outcomes.iter().enumerate();
        outcomes.filter_map(|(index, outcome)| Some((index, outcome.as_ref().err()?)))
    }

    /// How many items came to which end.
    pub fn counts(&self) -> Counts {
        self.counts
    }

    /// Why it ended.
    pub fn end(&self) -> End {
        self.end
    }

    /// Whether the input came to its end and every item is ok.
    pub fn is_complete(&self) -> bool {
        self.end == End::InputEnded && self.counts.ok == self.counts.items()
    }

    /// Why threads did not start or ended early.
    pub fn thread_errors(&self) -> &[ThreadError] {
        &self.thread_errors
    }

    /// All values in the order of the input, if the input came to its end and every item is ok; else the counts and all
    /// failures, as an error.
    pub fn into_result(self) -> Result<Vec<R>, Summary<E>> {
        if self.is_complete() {
            return Ok(self.ignore_failures());
        }
        let outcomes = self.outcomes.into_iter().enumerate();
        Err(Summary {
            counts: self.counts,
            end: self.end,
            failures: outcomes
                .filter_map(|(index, outcome)| Some((index, outcome.err()?)))
                .collect(),
            thread_errors: self.thread_errors,
        })
    }

    /// The values of the items that are ok, in the order of the input. The others are dropped without a word.
    pub fn ignore_failures(self) -> Vec<R> {
        self.outcomes.into_iter().filter_map(Result::ok).collect()
    }

    /// The same; each item that is not done is printed to standard error, and each thread that did not start or ended early.
    pub fn print_and_ignore(self) -> Vec<R>
    where
        E: fmt::Display,
    {
        // Nobody may be there to read it, as behind `2>&1 | head`; the values are there all the same.
        let mut out = io::stderr().lock();
        for error in &self.thread_errors {
            let _ = writeln!(out, "a thread: {error}");
        }
        for (index, why) in self.failures() {
            let _ = writeln!(out, "item {index} {why:#}");
        }
        drop(out);
        self.ignore_failures()
    }
}
