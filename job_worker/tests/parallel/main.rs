//! `in_parallel_n` and the builder behind it. It needs no database.

/// The queue, the window and the pulling of the input.
mod feeding;
/// What was wrong with the idea of 2010, and is not here.
mod flaws;
/// Things of a thread's own.
mod init;
/// One outcome for each item, of the right kind.
mod outcomes;
/// Panics in every closure that there is.
mod panics;
/// Stops and halts.
mod stopping;

use std::panic::{AssertUnwindSafe, catch_unwind};

/// The message of the panic that comes out of the closure.
fn panic_of<T>(closure: impl FnOnce() -> T) -> String {
    let payload = catch_unwind(AssertUnwindSafe(closure))
        .err()
        .expect("it did not panic");
    payload.downcast_ref::<&str>().expect("a text").to_string()
}
