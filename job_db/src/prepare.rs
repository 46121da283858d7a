use crate::{Database, DbConnection};
use diesel::result::QueryResult;

/// Gives a connection of the app what it lacks for use beside others. On SQLite it sets `busy_timeout` to a minute, the
/// journal's mode to WAL and `synchronous` to NORMAL: Diesel sets none of them, and without the first, an app and a worker
/// on one file fail with "database is locked". On the servers it does nothing.
///
/// With WAL and NORMAL a commit survives the death of any process, but the last ones may be undone by a loss of power:
/// `PRAGMA synchronous = FULL` afterwards, on each connection that writes, if they must not.
///
/// Call it after `establish`, or in the pool's `CustomizeConnection::on_acquire`.
///
/// ```
/// # #[cfg(feature = "sqlite")] {
/// use diesel::prelude::*;
/// let conn = &mut SqliteConnection::establish(":memory:").unwrap();
/// job_db::prepare_connection(conn).unwrap();
/// # }
/// ```
///
/// # Errors
/// What the database says.
pub fn prepare_connection<C: DbConnection>(conn: &mut C) -> QueryResult<()> {
    C::Db::prepare_shared(conn)
}
