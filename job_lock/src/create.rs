use crate::backend::LockBackend;
use crate::backend::lease::LeaseBackend;
use crate::wait::Patience;
use crate::{LockConnection, LockError, Wait, name};
use diesel::connection::TransactionManager;
use diesel::result::QueryResult;
use job_db::{Database, Fault, roll_back_to, transaction_depth};
use std::time::Duration;

/// How long to try again where others who write stand in the way.
const LIMIT: Duration = Duration::from_secs(60);
/// In microseconds: how long a process that is suspended midway may keep others from making the same lock.
const LONGEST: i64 = 5_000_000;

pub(crate) fn create<C: LockConnection>(conn: &mut C, name: &str) -> Result<bool, LockError> {
    name::check(name)?;
    create_patiently(conn, name, &Patience::new(Wait::AtMost(LIMIT)))
}

pub(crate) fn create_patiently<C: LockConnection>(
    conn: &mut C,
    name: &str,
    patience: &Patience,
) -> Result<bool, LockError> {
    let depth = transaction_depth(conn);
    loop {
        match create_once(conn, name) {
            Ok(made) => return Ok(made),
            Err(error) => {
                roll_back_to(conn, depth);
                let again = depth == 0 && C::Db::fault(&error) == Fault::Contended;
                if !again || !patience.pause(C::Db::PAUSE) {
                    let error = LockError::taking::<C::Db>(error, name);
                    return Err(error.explained(conn));
                }
            }
        }
    }
}

/// A transaction of its own, or a savepoint in the caller's, where an error would break the transaction on PostgreSQL.
fn create_once<C: LockConnection>(conn: &mut C, name: &str) -> QueryResult<bool> {
    if transaction_depth(conn) == 0 {
        // A row that is not committed keeps others from making it, on SQLite from any write.
        return C::Db::at_once(conn, LONGEST, |conn| make(conn, name));
    }
    C::TransactionManager::begin_transaction(conn)?;
    let made = make(conn, name)?;
    C::TransactionManager::commit_transaction(conn)?;
    Ok(made)
}

/// Looks first, since an INSERT would wait for whoever holds the lock.
fn make<C: LockConnection>(conn: &mut C, name: &str) -> QueryResult<bool> {
    Ok(!C::Db::exists(conn, name)? && C::Db::create(conn, name)?)
}
