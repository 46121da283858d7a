use crate::{Database, DbConnection};
use chrono::{DateTime, Utc};
use diesel::result::QueryResult;

/// Asks the database what time it is.
///
/// # Errors
/// What Diesel says of the connection.
pub fn now<C: DbConnection>(conn: &mut C) -> QueryResult<DateTime<Utc>> {
    C::Db::now(conn)
}
