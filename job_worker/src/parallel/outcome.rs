use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::{error, fmt, mem};

/// What came of one item: what the closure gave, or why there is nothing.
pub type Outcome<R, E> = Result<R, NotDone<E>>;

/// Why an item is not done.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NotDone<E> {
    /// The closure gave this error.
    Failed(E),
    /// The closure panicked, or the item did when it was dropped.
    Panicked(Panic),
    /// The item was pulled from the input and never started: [`End`](super::End) says why.
    Skipped,
}

impl<E: fmt::Display> fmt::Display for NotDone<E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            // The formatter goes on to the error: `{:#}` shows what lies behind one of anyhow's.
            NotDone::Failed(error) => {
                f.write_str("failed: ")?;
                error.fmt(f)
            }
            NotDone::Panicked(panic) => write!(f, "panicked: {panic}"),
            NotDone::Skipped => f.write_str("skipped"),
        }
    }
}

impl<E: fmt::Debug + fmt::Display> error::Error for NotDone<E> {}

/// A panic that was caught: its message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Panic {
    message: String,
}

/// What `catch_unwind` gives.
pub(super) type Payload = Box<dyn Any + Send>;

impl Panic {
    pub(super) fn new(payload: Payload) -> Self {
        let text = payload.downcast_ref::<&str>().map(|text| (*text).to_owned());
        let message = text
            .or_else(|| payload.downcast_ref::<String>().cloned())
            .unwrap_or_else(|| "a value that is no text".to_owned());
        drop_quietly(payload);
        Panic { message }
    }

    /// The message, if the panic came with a text, as those of `panic!` do.
    pub fn message(&self) -> &str {
        &self.message
    }
}

impl fmt::Display for Panic {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

/// Calls the closure and gives its panic instead of going on unwinding.
///
/// What the closure leaves behind may be broken: whoever calls this must not look at it after a panic.
pub(super) fn caught<T>(closure: impl FnOnce() -> T) -> Result<T, Payload> {
    catch_unwind(AssertUnwindSafe(closure))
}

/// Drops a value whose `Drop` may panic, and what that panic carries as well.
pub(super) fn drop_quietly<T>(value: T) {
    if let Err(payload) = caught(|| drop(value))
        && let Err(worse) = caught(|| drop(payload))
    {
        // A payload whose payload panics too will not get a third chance.
        mem::forget(worse);
    }
}
