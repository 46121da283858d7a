//! Whether a transaction is still the one that was begun.
//!
//! A database may have ended it behind Diesel's back: after an error that a closure swallowed, by a COMMIT or ROLLBACK of
//! the closure's own, by DDL. Each later statement is then committed at once, and COMMIT says nothing of it. A savepoint
//! shows it: it goes with its transaction, whatever ends that, and cannot be released any more.

use crate::backend::LockBackend;
use crate::{LockConnection, LockError};
use diesel::connection::TransactionManager;
use diesel::result::QueryResult;
use job_db::{Database, Fault, is_broken, roll_back_to, transaction_depth};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::thread;

/// Marks the open transaction by a savepoint.
pub(crate) fn mark<C: LockConnection>(conn: &mut C) -> QueryResult<()> {
    C::TransactionManager::begin_transaction(conn)
}

/// Runs `work` in the open transaction, which is [marked](mark) and the only one, and commits it; after an error or a panic it
/// is rolled back.
pub(crate) fn run_marked<C, T, E>(
    conn: &mut C,
    name: &str,
    work: impl FnOnce(&mut C) -> Result<T, E>,
) -> thread::Result<Result<T, E>>
where
    C: LockConnection,
    E: From<LockError>,
{
    let result = catch_unwind(AssertUnwindSafe(|| {
        let value = work(conn)?;
        commit_marked(conn, name)?;
        Ok(value)
    }));
    if !matches!(result, Ok(Ok(_))) {
        roll_back_to(conn, 0);
    }
    result
}

/// Commits the transaction that was [marked](mark) when it was the only one.
pub(crate) fn commit_marked<C: LockConnection>(conn: &mut C, name: &str) -> Result<(), LockError> {
    check_depth(conn, name, 2)?;
    release(conn, name)?;
    C::TransactionManager::commit_transaction(conn)
        .map_err(|error| LockError::committing::<C::Db>(error, name))
}

/// An error where a closure has not ended what it has begun, or has ended more.
pub(crate) fn check_depth<C: LockConnection>(conn: &mut C, name: &str, depth: u32) -> Result<(), LockError> {
    // A broken one counts as one transaction.
    if transaction_depth(conn) == depth && !is_broken(conn) {
        Ok(())
    } else {
        Err(LockError::Lost(name.to_owned()))
    }
}

/// Releases the innermost savepoint, if its transaction is still there.
pub(crate) fn release<C: LockConnection>(conn: &mut C, name: &str) -> Result<(), LockError> {
    C::TransactionManager::commit_transaction(conn).map_err(|error| {
        if C::Db::clash(&error).is_none() && C::Db::fault(&error) == Fault::Other {
            LockError::Lost(name.to_owned())
        } else {
            LockError::committing::<C::Db>(error, name)
        }
    })
}
