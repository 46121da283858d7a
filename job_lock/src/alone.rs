use crate::LockConnection;
use crate::backend::LockBackend;
use diesel::connection::TransactionManager;
use diesel::result::QueryResult;
use job_db::roll_back_to;

/// Runs `work` in a transaction of its own at READ COMMITTED. A single statement is in one too, since behind a proxy its
/// preparation and its execution could otherwise reach two sessions.
pub(crate) fn in_transaction<C: LockConnection, T>(
    conn: &mut C,
    work: impl FnOnce(&mut C) -> QueryResult<T>,
) -> QueryResult<T> {
    let result = C::Db::begin(conn).and_then(|()| {
        let value = work(conn)?;
        C::TransactionManager::commit_transaction(conn)?;
        Ok(value)
    });
    if result.is_err() {
        roll_back_to(conn, 0);
    }
    result
}
