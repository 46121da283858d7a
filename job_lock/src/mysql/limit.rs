//! How long a session waits for a row: its own limit is changed for one statement, and put back.

use diesel::connection::LoadConnection;
use diesel::mysql::Mysql;
use diesel::result::QueryResult;

/// Every session has a limit of 50 seconds, which nobody chose. Where the server does not look for deadlocks, the
/// limit is what ends them, and stays.
pub(super) const LIFT_WAIT_LIMIT: &str = "SET @gatun_lock_wait = @@SESSION.innodb_lock_wait_timeout,
    SESSION innodb_lock_wait_timeout = IF(@@GLOBAL.innodb_deadlock_detect, 1073741824, @@SESSION.innodb_lock_wait_timeout)";

/// MySQL has none that is shorter.
const SHORTEST_WAIT_LIMIT: &str = "SET @gatun_lock_wait = @@SESSION.innodb_lock_wait_timeout,
    SESSION innodb_lock_wait_timeout = 1";
const RESTORE_WAIT_LIMIT: &str = "SET SESSION innodb_lock_wait_timeout = @gatun_lock_wait";

/// In one round trip, a savepoint by which the transaction is known again: it goes with it.
pub(super) const RESTORE_WAIT_LIMIT_AND_MARK: &str =
    "SET SESSION innodb_lock_wait_timeout = @gatun_lock_wait; SAVEPOINT gatun_lock";

pub(super) fn with_no_wait_limit<C, T>(
    conn: &mut C,
    wait: impl FnOnce(&mut C) -> QueryResult<T>,
) -> QueryResult<T>
where
    C: LoadConnection<Backend = Mysql>,
{
    with_wait_limit(conn, LIFT_WAIT_LIMIT, RESTORE_WAIT_LIMIT, wait)
}

pub(super) fn with_shortest_wait_limit<C, T>(
    conn: &mut C,
    wait: impl FnOnce(&mut C) -> QueryResult<T>,
) -> QueryResult<T>
where
    C: LoadConnection<Backend = Mysql>,
{
    with_wait_limit(conn, SHORTEST_WAIT_LIMIT, RESTORE_WAIT_LIMIT, wait)
}

pub(super) fn with_wait_limit<C, T>(
    conn: &mut C,
    limit: &str,
    restore: &str,
    wait: impl FnOnce(&mut C) -> QueryResult<T>,
) -> QueryResult<T>
where
    C: LoadConnection<Backend = Mysql>,
{
    conn.batch_execute(limit)?;
    let result = wait(conn);
    let restored = conn.batch_execute(restore);
    let value = result?;
    restored?;
    Ok(value)
}
