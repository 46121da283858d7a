//! The path of a lock: acquire, run, commit.

use crate::acquire::{Tokens, acquire};
use crate::backend::LockBackend;
use crate::mark::{check_depth, commit_marked, release};
use crate::owner::{self, Active};
use crate::watch::Watch;
use crate::{LockConnection, LockError, LockOptions, Locked};
use job_db::{mark_if_over, roll_back_to, transaction_depth};
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
        let Tokens { tokens, mark } = acquire(options, conn, &owner)?;
        let watch = Watch::new(tokens[0].0, options.warn_after);
        let value = run(conn, &tokens, &owner, closure)?;
        commit(conn, tokens[0].0, depth, mark)?;
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

/// Commits what was opened at `depth`, if it is still the transaction that took the lock.
fn commit<C: LockConnection>(
    conn: &mut C,
    name: &str,
    depth: u32,
    mark: Option<i64>,
) -> Result<(), LockError> {
    if depth > 0 {
        // The savepoint that it had opened in the caller's transaction.
        check_depth(conn, name, depth + 1)?;
        let released = release(conn, name);
        if released.is_err() {
            // Diesel has rolled back already, and so nobody else looks whether the caller's transaction is there.
            mark_if_over(conn, depth);
        }
        return released;
    }
    let Some(mark) = mark else {
        return commit_marked(conn, name);
    };
    check_depth(conn, name, 1)?;
    match C::Db::commit_if(conn, mark) {
        Ok(true) => Ok(()),
        Ok(false) => Err(LockError::Lost(name.to_owned())),
        Err(error) => Err(LockError::committing::<C::Db>(error, name)),
    }
}
