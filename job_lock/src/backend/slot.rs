use diesel::connection::LoadConnection;
use diesel::result::{Error, QueryResult};
use job_db::Database;
use std::time::Duration;

/// A slot's number and the namespace that it is one of.
#[derive(Clone, Copy, Debug)]
pub struct SlotKey<'a> {
    /// The namespace.
    pub namespace: &'a str,
    /// From 0.
    pub number: u32,
}

/// What came of reaching for a lock of the session's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SessionLock {
    /// This session has it now, and has not had it before.
    Taken,
    /// A session has it.
    Held,
    /// The server could not say.
    Unanswered,
}

/// What slots need of a database: locks that are a session's. Where there are none, a slot is a lease, and only
/// [`wait_limit`](SlotBackend::wait_limit) is called.
pub trait SlotBackend: Database {
    /// Whether the database has locks that last as long as a session.
    #[doc(hidden)]
    const HAS_SESSION_LOCKS: bool = false;

    /// How long this connection was told to wait for those who keep the whole database.
    #[doc(hidden)]
    fn wait_limit<C>(_conn: &mut C) -> QueryResult<Duration>
    where
        C: LoadConnection<Backend = Self>,
    {
        Ok(Duration::ZERO)
    }

    /// Tells the server's sessions apart, by a statement that is not kept prepared: one that was prepared in one session
    /// would be an error of its own in the next.
    #[doc(hidden)]
    fn session<C>(_conn: &mut C) -> QueryResult<i64>
    where
        C: LoadConnection<Backend = Self>,
    {
        Err(Error::NotFound)
    }

    /// Takes the slot's lock without waiting.
    #[doc(hidden)]
    fn take_slot<C>(_conn: &mut C, _key: SlotKey<'_>) -> QueryResult<SessionLock>
    where
        C: LoadConnection<Backend = Self>,
    {
        Err(Error::NotFound)
    }

    /// Whether this very session has the slot's lock.
    #[doc(hidden)]
    fn has_slot<C>(_conn: &mut C, _key: SlotKey<'_>) -> QueryResult<bool>
    where
        C: LoadConnection<Backend = Self>,
    {
        Err(Error::NotFound)
    }

    /// Gives the slot's lock back.
    #[doc(hidden)]
    fn free_slot<C>(_conn: &mut C, _key: SlotKey<'_>) -> QueryResult<()>
    where
        C: LoadConnection<Backend = Self>,
    {
        Err(Error::NotFound)
    }
}
