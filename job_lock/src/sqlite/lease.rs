use super::{BusyTimeout, FREE, with_busy_timeout};
use crate::backend::lease::{LeaseBackend, LeaseKey};
use crate::backend::slot::SlotBackend;
use diesel::connection::LoadConnection;
use diesel::prelude::*;
use diesel::sqlite::Sqlite;
use job_db::Database;
use std::time::Duration;

job_db::statement! {
    struct Lease<'a> on Sqlite { name: &'a str => Text, owner: &'a str => Text, ttl: i64 => BigInt } -> BigInt;
    "UPDATE locks SET token = token + 1, owner = " owner ", acquired_at = " {Sqlite::NOW_SQL} ",
       expires_at = " {Sqlite::NOW_SQL} " + " ttl "
     WHERE name = " name " AND " {FREE} {Sqlite::NOW_SQL} ") RETURNING token"
}

job_db::statement! {
    struct Renew<'a> on Sqlite {
        name: &'a str => Text, owner: &'a str => Text, token: i64 => BigInt, ttl: i64 => BigInt
    } -> ();
    "UPDATE locks SET expires_at = " {Sqlite::NOW_SQL} " + " ttl "
     WHERE name = " name " AND token = " token " AND owner = " owner " AND expires_at IS NOT NULL"
}

job_db::statement! {
    struct Release<'a> on Sqlite {
        name: &'a str => Text, owner: &'a str => Text, token: i64 => BigInt, at_least: i64 => BigInt
    } -> ();
    "UPDATE locks SET expires_at =
       CASE WHEN acquired_at + " at_least " > " {Sqlite::NOW_SQL} " THEN acquired_at + " at_least " END
     WHERE name = " name " AND token = " token " AND owner = " owner " AND expires_at IS NOT NULL"
}

/// How long a statement of a lease waits for other writers; the caller tries again.
const BRIEFLY: Option<Duration> = Some(Duration::from_millis(20));

/// Renews a lease, with another limit for the wait than the connection's own if it is said.
fn extend<C>(conn: &mut C, key: LeaseKey<'_>, ttl: i64, limit: Option<Duration>) -> QueryResult<bool>
where
    C: LoadConnection<Backend = Sqlite>,
{
    let LeaseKey { name, owner, token } = key;
    let renew = Renew {
        name,
        owner,
        token,
        ttl,
    };
    Ok(with_busy_timeout(conn, limit, |conn| renew.execute(conn))? == 1)
}

impl LeaseBackend for Sqlite {
    fn at_once<C, T>(conn: &mut C, _ttl: i64, work: impl FnOnce(&mut C) -> QueryResult<T>) -> QueryResult<T>
    where
        C: LoadConnection<Backend = Self>,
    {
        // Each statement is committed with itself.
        work(conn)
    }

    fn lease<C>(conn: &mut C, name: &str, owner: &str, ttl: i64) -> QueryResult<Option<i64>>
    where
        C: LoadConnection<Backend = Self>,
    {
        let lease = Lease { name, owner, ttl };
        with_busy_timeout(conn, BRIEFLY, |conn| lease.get_result(conn).optional())
    }

    fn renew<C>(conn: &mut C, key: LeaseKey<'_>, ttl: i64) -> QueryResult<bool>
    where
        C: LoadConnection<Backend = Self>,
    {
        extend(conn, key, ttl, BRIEFLY)
    }

    fn fence<C>(conn: &mut C, key: LeaseKey<'_>, ttl: i64) -> QueryResult<bool>
    where
        C: LoadConnection<Backend = Self>,
    {
        extend(conn, key, ttl, None)
    }

    fn release<C>(conn: &mut C, key: LeaseKey<'_>, at_least: i64) -> QueryResult<bool>
    where
        C: LoadConnection<Backend = Self>,
    {
        let LeaseKey { name, owner, token } = key;
        let release = Release {
            name,
            owner,
            token,
            at_least,
        };
        Ok(with_busy_timeout(conn, BRIEFLY, |conn| release.execute(conn))? == 1)
    }
}

/// SQLite has no sessions: a slot is a lease there.
impl SlotBackend for Sqlite {
    fn wait_limit<C>(conn: &mut C) -> QueryResult<Duration>
    where
        C: LoadConnection<Backend = Self>,
    {
        let millis: i32 = BusyTimeout {}.get_result(conn)?;
        Ok(Duration::from_millis(u64::try_from(millis).unwrap_or(0)))
    }
}
