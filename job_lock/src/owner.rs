//! Who holds a lock, for people and for re-entrance.
//!
//! A connection must know whether it holds a lock already. Neither its address nor its thread tells that for sure, but the
//! database does: only the transaction that wrote a row sees what it wrote before the commit. So each acquisition
//! writes an owner into the row that was never there before, and that owner stands in [`ACTIVE`] for as long as the closure
//! runs and no longer. Whoever sees an active owner in the row sees what is not committed, and is its holder; unless that
//! closure has committed it by hand. So the owner also carries a number of its session's or connection's, and is nobody's
//! in any other.

use std::collections::HashSet;
use std::sync::{Mutex, PoisonError};

/// The owners of this process whose closures run.
static ACTIVE: Mutex<Option<HashSet<String>>> = Mutex::new(None);

const MAX_CHARS: usize = 60;

fn active<T>(look: impl FnOnce(&mut HashSet<String>) -> T) -> T {
    let mut active = ACTIVE.lock().unwrap_or_else(PoisonError::into_inner);
    look(active.get_or_insert_default())
}

/// A name for one acquisition: host, process, thread, and what makes it unlike any other.
pub(crate) fn new() -> String {
    let thread = std::thread::current();
    format!(
        "{}/{}/{}/{:032x}",
        job_db::host_name(),
        std::process::id(),
        short(thread.name().unwrap_or("-")),
        fastrand::u128(..)
    )
}

/// Whether this process has a closure that runs under this owner.
pub(crate) fn is_active(owner: &str) -> bool {
    active(|owners| owners.contains(owner))
}

/// Whether this process has no closure that runs under any owner.
pub(crate) fn none_is_active() -> bool {
    active(|owners| owners.is_empty())
}

/// An owner is active as long as this lives; it must go before the COMMIT, also in a panic.
pub(crate) struct Active<'a>(&'a str);

impl<'a> Active<'a> {
    pub(crate) fn new(owner: &'a str) -> Self {
        active(|owners| owners.insert(owner.to_owned()));
        Self(owner)
    }
}

impl Drop for Active<'_> {
    fn drop(&mut self) {
        active(|owners| owners.remove(self.0));
    }
}

fn short(text: &str) -> String {
    text.chars().take(MAX_CHARS).collect()
}
