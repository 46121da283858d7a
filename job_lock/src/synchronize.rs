//! The path of a lock: acquire, run, commit.

use crate::acquire::{Tokens, acquire};
use crate::backend::LockBackend;
use crate::owner::{self, Active};
use crate::watch::Watch;
use crate::{LockConnection, LockError, LockOptions, Locked};
use diesel::connection::TransactionManager;
use job_db::{Database, Fault, roll_back_to, transaction_depth};
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};

pub(crate) fn synchronize<C, T, E>(
    options: &LockOptions<'_>,
    conn: &mut C,
    closure: impl FnOnce(&mut Locked<'_, C>) -> Result<T, E>,
) -> Result<T, E>
where
    C: LockConnection,
    E: From<LockError>,
{
    let depth = transaction_depth(conn);
    // Diesel's own transactions stay open after a panic, and a later one would be a savepoint that nobody commits.
    let result = catch_unwind(AssertUnwindSafe(|| {
        let owner = owner::new();
        let Tokens { tokens, transaction } = acquire(options, conn, &owner)?;
        let watch = Watch::new(tokens[0].0, options.warn_after);
        let value = run(conn, &tokens, &owner, closure)?;
        commit(conn, tokens[0].0, &owner, depth, transaction)?;
        drop(watch);
        Ok(value)
    }));
    match result {
        Ok(Ok(value)) => Ok(value),
        Ok(Err(error)) => {
            roll_back_to(conn, depth);
            Err(error)
        }
        Err(panic) => {
            roll_back_to(conn, depth);
            resume_unwind(panic)
        }
    }
}

fn run<C, T, E>(
    conn: &mut C,
    tokens: &[(&str, i64)],
    owner: &str,
    closure: impl FnOnce(&mut Locked<'_, C>) -> Result<T, E>,
) -> Result<T, E> {
    let _active = Active::new(owner);
    closure(&mut Locked { conn, tokens })
}

/// Commits the transaction that was opened at `depth`, if it is still the one that took the lock. A database may have
/// rolled it back after an error that the closure swallowed; COMMIT would say nothing then.
fn commit<C: LockConnection>(
    conn: &mut C,
    name: &str,
    owner: &str,
    depth: u32,
    transaction: Option<i64>,
) -> Result<(), LockError> {
    let lost = || LockError::Lost(name.to_owned());
    if transaction_depth(conn) != depth + 1 {
        return Err(lost());
    }
    if depth > 0 {
        // A savepoint went with its transaction, and the database says so.
        return C::TransactionManager::commit_transaction(conn).map_err(
            |error| match LockError::committing::<C::Db>(error, name) {
                LockError::Database(error) if C::Db::fault(&error) == Fault::Other => lost(),
                error => error,
            },
        );
    }
    match C::Db::commit_as(conn, name, owner, transaction) {
        Ok(true) => Ok(()),
        Ok(false) => Err(lost()),
        Err(error) => Err(LockError::committing::<C::Db>(error, name)),
    }
}
