use super::error::ThreadError;
use super::outcome::NotDone;
use std::{error, fmt};

/// How many items came to which end.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Counts {
    /// The closure gave a value.
    pub ok: u64,
    /// The closure gave an error.
    pub failed: u64,
    /// The closure panicked.
    pub panicked: u64,
    /// Pulled from the input and never started.
    pub skipped: u64,
}

impl Counts {
    /// All of them together: the items that were pulled from the input.
    pub fn items(&self) -> u64 {
        self.ok + self.failed + self.panicked + self.skipped
    }

    pub(super) fn add<E>(&mut self, result: Result<(), &NotDone<E>>) {
        *match result {
            Ok(()) => &mut self.ok,
            Err(NotDone::Failed(_)) => &mut self.failed,
            Err(NotDone::Panicked(_)) => &mut self.panicked,
            Err(NotDone::Skipped) => &mut self.skipped,
        } += 1;
    }
}

impl fmt::Display for Counts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Counts {
            ok,
            failed,
            panicked,
            skipped,
        } = self;
        write!(
            f,
            "{ok} ok, {failed} failed, {panicked} panicked, {skipped} skipped"
        )
    }
}

/// Why it ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum End {
    /// The input was pulled to its end and every item was started.
    InputEnded,
    /// As many items had failed as [`Halt`](super::Halt) allows. The rest of the input was not pulled.
    Halted,
    /// A [`StopToken`](super::StopToken) was stopped. The rest of the input was not pulled.
    Stopped,
    /// No thread was left, and there was another item. The rest of the input was not pulled.
    ThreadsGone,
}

impl fmt::Display for End {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            End::InputEnded => "to the end of the input",
            End::Halted => "halted after too many failures",
            End::Stopped => "stopped",
            End::ThreadsGone => "given up, no thread being left",
        })
    }
}

/// What came of all items, without the values: the counts, and the failures as far as they were kept.
///
/// It is what [`for_each_outcome`](super::Parallel::for_each_outcome) gives, and the error of
/// [`Report::into_result`](super::Report::into_result).
#[must_use = "failures are lost where nobody looks at the summary"]
#[derive(Debug)]
pub struct Summary<E> {
    pub(super) counts: Counts,
    pub(super) end: End,
    pub(super) failures: Vec<(usize, NotDone<E>)>,
    pub(super) thread_errors: Vec<ThreadError>,
}

impl<E> Summary<E> {
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

    /// The items that are not done, each with its index in the input: the first ones that were told, as many as
    /// [`keep_failures`](super::Parallel::keep_failures) says.
    pub fn failures(&self) -> &[(usize, NotDone<E>)] {
        &self.failures
    }

    /// Why threads did not start or ended early.
    pub fn thread_errors(&self) -> &[ThreadError] {
        &self.thread_errors
    }

    /// The counts if everything is done, else the summary as an error.
    pub fn into_result(self) -> Result<Counts, Summary<E>> {
        if self.is_complete() {
            Ok(self.counts)
        } else {
            Err(self)
        }
    }
}

impl<E: fmt::Display> fmt::Display for Summary<E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.end, self.counts)?;
        if let Some((index, why)) = self.failures.first() {
            write!(f, "; item {index} ")?;
            why.fmt(f)?;
        }
        if let Some(error) = self.thread_errors.first() {
            write!(f, "; a thread: {error}")?;
        }
        Ok(())
    }
}

impl<E: fmt::Debug + fmt::Display> error::Error for Summary<E> {}
