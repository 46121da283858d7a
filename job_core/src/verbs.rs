//! The verbs that users call, written once and compiled twice: for Diesel's connections, which block until the answer is
//! there, and with the feature `diesel_async` for those of diesel_async, which are awaited.
//!
//! A function that talks to the database stands in `verb!`, which makes it an `async fn` in the second copy, and what it
//! asks of the database or of another verb in `wait!`, which awaits it there. Whatever else differs is in the module
//! `transaction` of each copy. There are no closures, since the future of an async closure cannot be said to be `Send`.

/// For Diesel's connections.
#[path = "verbs"]
pub(crate) mod blocking {
    macro_rules! verb {
        ($($function:tt)*) => { $($function)* };
    }
    macro_rules! wait {
        ($answer:expr) => {
            $answer
        };
    }
    pub(crate) use {verb, wait};

    use crate::JobConnection;
    use crate::backend::JobBackend;

    pub(crate) mod change;
    pub(crate) mod enqueue;
    pub(crate) mod look;
    #[path = "blocking.rs"]
    mod transaction;
    pub(crate) mod wake;
}

/// For those of diesel_async.
#[cfg(feature = "diesel_async")]
#[allow(clippy::duplicate_mod)] // The same verbs.
#[path = "verbs"]
pub(crate) mod asynchronous {
    macro_rules! verb {
        ($(#[$meta:meta])* $vis:vis fn $($function:tt)*) => { $(#[$meta])* $vis async fn $($function)* };
    }
    macro_rules! wait {
        ($answer:expr) => {
            $answer.await
        };
    }
    pub(crate) use {verb, wait};

    use crate::backend::asynchronous::{AsyncJobBackend as JobBackend, AsyncJobConnection as JobConnection};

    pub(crate) mod change;
    pub(crate) mod enqueue;
    pub(crate) mod look;
    #[path = "asynchronous.rs"]
    mod transaction;
    pub(crate) mod wake;

    pub(crate) use transaction::usable;
}
