//! Which connection has written an owner. SQLite has no sessions with numbers, and so each connection that has taken a lock
//! gives itself one, in a temporary table of its own, which never comes into the file.

use diesel::connection::LoadConnection;
use diesel::prelude::*;
use diesel::sqlite::Sqlite;

/// This connection's number, once it has one.
pub(super) const NUMBER: &str = "(SELECT number FROM temp.gatun_connection)";

const GIVE_NUMBER: &str = "CREATE TEMP TABLE IF NOT EXISTS gatun_connection AS SELECT random() AS number";

job_db::statement! {
    struct HasNumber on Sqlite {} -> Bool;
    "SELECT EXISTS (SELECT 1 FROM sqlite_temp_master WHERE name = 'gatun_connection')"
}

job_db::statement! {
    struct Suffix on Sqlite {} -> Text;
    "SELECT '/' || " {NUMBER}
}

/// Gives the connection a number, if it has none.
pub(super) fn number<C>(conn: &mut C) -> QueryResult<()>
where
    C: LoadConnection<Backend = Sqlite>,
{
    conn.batch_execute(GIVE_NUMBER)
}

/// The owner without the number, if this connection has written it.
pub(super) fn own<C>(conn: &mut C, owner: Option<String>) -> QueryResult<Option<String>>
where
    C: LoadConnection<Backend = Sqlite>,
{
    let Some(owner) = owner.filter(|_| !crate::owner::none_is_active()) else {
        return Ok(None);
    };
    // It must write nothing: the caller's connection may be one that only reads.
    let has_number: bool = HasNumber {}.get_result(conn)?;
    if !has_number {
        return Ok(None);
    }
    let suffix: String = Suffix {}.get_result(conn)?;
    Ok(owner.strip_suffix(&suffix).map(str::to_owned))
}
