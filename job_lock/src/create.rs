use crate::wait::Patience;
use crate::{LockBackend, LockConnection, LockError, Wait, name};
use diesel::connection::TransactionManager;
use diesel::result::QueryResult;
use job_db::{Database, Fault, roll_back_to, transaction_depth};
use std::time::Duration;

/// How long to try again where others who write stand in the way.
const LIMIT: Duration = Duration::from_secs(60);

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

/// Looks first, since an INSERT would wait for whoever holds the lock. The transaction or savepoint is for PostgreSQL,
/// where an error would break the caller's transaction.
fn create_once<C: LockConnection>(conn: &mut C, name: &str) -> QueryResult<bool> {
    if transaction_depth(conn) == 0 {
        C::Db::begin(conn)?;
    } else {
        C::TransactionManager::begin_transaction(conn)?;
    }
    let made = !C::Db::exists(conn, name)? && C::Db::create(conn, name)?;
    C::TransactionManager::commit_transaction(conn)?;
    Ok(made)
}
