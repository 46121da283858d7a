use crate::backend::slot::{SessionLock, SlotBackend, SlotKey};
use diesel::connection::LoadConnection;
use diesel::pg::Pg;
use diesel::prelude::*;
use diesel::sql_types::BigInt;

/// The lock stands in pg_locks as one of two integers, of this session, in this database.
const MINE: &str = "EXISTS (SELECT 1 FROM pg_catalog.pg_locks
       WHERE locktype = 'advisory' AND granted AND pid = pg_backend_pid() AND objsubid = 2
         AND database = (SELECT oid FROM pg_catalog.pg_database WHERE datname = current_database())";

job_db::statement! {
    // The lock of a session can be taken twice by it; the second time is none.
    struct Take on Pg { class: i32 => Integer, object: i32 => Integer } -> Bool;
    "SELECT CASE WHEN " {MINE} " AND classid = " class "::bigint::bit(32)::bigint::oid
         AND objid = " object "::bigint::bit(32)::bigint::oid)
       THEN false ELSE pg_try_advisory_lock(" class ", " object ") END"
}

job_db::statement! {
    struct Has on Pg { class: i32 => Integer, object: i32 => Integer } -> Bool;
    "SELECT " {MINE} " AND classid = " class "::bigint::bit(32)::bigint::oid
       AND objid = " object "::bigint::bit(32)::bigint::oid)"
}

job_db::statement! {
    struct Free on Pg { class: i32 => Integer, object: i32 => Integer } -> Bool;
    "SELECT pg_advisory_unlock(" class ", " object ")"
}

#[derive(QueryableByName)]
struct Session {
    #[diesel(sql_type = BigInt)]
    number: i64,
}

/// The key of the lock: the hash's upper 32 bits, and its lower 16 with the slot's number.
fn key(key: SlotKey<'_>) -> (i32, i32) {
    let hash = job_db::fnv1a(key.namespace.bytes());
    let class = (hash >> 32) as u32;
    let object = ((hash as u32 & 0xffff) << 16) | key.number;
    (class.cast_signed(), object.cast_signed())
}

impl SlotBackend for Pg {
    const HAS_SESSION_LOCKS: bool = true;

    fn session<C>(conn: &mut C) -> QueryResult<i64>
    where
        C: LoadConnection<Backend = Self>,
    {
        let session: Session =
            diesel::sql_query("SELECT pg_backend_pid()::bigint AS number").get_result(conn)?;
        Ok(session.number)
    }

    fn take_slot<C>(conn: &mut C, slot: SlotKey<'_>) -> QueryResult<SessionLock>
    where
        C: LoadConnection<Backend = Self>,
    {
        let (class, object) = key(slot);
        let took: bool = Take { class, object }.get_result(conn)?;
        Ok(if took {
            SessionLock::Taken
        } else {
            SessionLock::Held
        })
    }

    fn has_slot<C>(conn: &mut C, slot: SlotKey<'_>) -> QueryResult<bool>
    where
        C: LoadConnection<Backend = Self>,
    {
        let (class, object) = key(slot);
        Has { class, object }.get_result(conn)
    }

    fn free_slot<C>(conn: &mut C, slot: SlotKey<'_>) -> QueryResult<()>
    where
        C: LoadConnection<Backend = Self>,
    {
        let (class, object) = key(slot);
        Free { class, object }.get_result::<bool>(conn).map(|_| ())
    }
}

#[cfg(test)]
mod tests {
    use super::{SlotKey, key};

    #[test]
    fn the_key_is_as_documented() {
        // FNV-1a of "" is its offset basis.
        let (class, object) = key(SlotKey {
            namespace: "",
            number: 3,
        });
        assert_eq!(class.cast_unsigned(), 0xcbf2_9ce4);
        assert_eq!(object.cast_unsigned(), 0x2325_0003);
    }
}
