use crate::backend::slot::{SessionLock, SlotBackend, SlotKey};
use diesel::connection::LoadConnection;
use diesel::mysql::Mysql;
use diesel::prelude::*;
use diesel::sql_types::BigInt;

/// Names of GET_LOCK are the whole server's, and have at most 64 characters; this one has at most 49. Namespace and
/// number follow, and a bracket. MariaDB's name of the database is in a character set of three bytes, which does not mix
/// with what has four.
const NAME: &str = "CONCAT('gatun_slot_', MD5(CONCAT(COALESCE(CONVERT(DATABASE() USING utf8mb4), ''), '/', ";

job_db::statement! {
    // The lock of a session can be taken twice by it; the second time is none.
    struct Take<'a> on Mysql { namespace: &'a str => Text, number: i64 => BigInt } -> Nullable<BigInt>;
    "SELECT CASE WHEN COALESCE(IS_USED_LOCK(" {NAME} namespace ")), '_', " number ")) = CONNECTION_ID(), FALSE) THEN 0
       ELSE GET_LOCK(" {NAME} namespace ")), '_', " number "), 0) END"
}

job_db::statement! {
    struct Has<'a> on Mysql { namespace: &'a str => Text, number: i64 => BigInt } -> Bool;
    "SELECT COALESCE(IS_USED_LOCK(" {NAME} namespace ")), '_', " number ")) = CONNECTION_ID(), FALSE)"
}

job_db::statement! {
    struct Free<'a> on Mysql { namespace: &'a str => Text, number: i64 => BigInt } -> Nullable<BigInt>;
    "SELECT RELEASE_LOCK(" {NAME} namespace ")), '_', " number "))"
}

#[derive(QueryableByName)]
struct Session {
    #[diesel(sql_type = BigInt)]
    number: i64,
}

impl SlotBackend for Mysql {
    const HAS_SESSION_LOCKS: bool = true;

    fn session<C>(conn: &mut C) -> QueryResult<i64>
    where
        C: LoadConnection<Backend = Self>,
    {
        let session: Session =
            diesel::sql_query("SELECT CAST(CONNECTION_ID() AS SIGNED) AS number").get_result(conn)?;
        Ok(session.number)
    }

    fn take_slot<C>(conn: &mut C, key: SlotKey<'_>) -> QueryResult<SessionLock>
    where
        C: LoadConnection<Backend = Self>,
    {
        let take = Take {
            namespace: key.namespace,
            number: key.number.into(),
        };
        Ok(match take.get_result::<Option<i64>>(conn)? {
            Some(1) => SessionLock::Taken,
            Some(_) => SessionLock::Held,
            // Out of memory, or the thread was killed.
            None => SessionLock::Unanswered,
        })
    }

    fn has_slot<C>(conn: &mut C, key: SlotKey<'_>) -> QueryResult<bool>
    where
        C: LoadConnection<Backend = Self>,
    {
        let has = Has {
            namespace: key.namespace,
            number: key.number.into(),
        };
        has.get_result(conn)
    }

    fn free_slot<C>(conn: &mut C, key: SlotKey<'_>) -> QueryResult<()>
    where
        C: LoadConnection<Backend = Self>,
    {
        let free = Free {
            namespace: key.namespace,
            number: key.number.into(),
        };
        free.get_result::<Option<i64>>(conn).map(|_| ())
    }
}
