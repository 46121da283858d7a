use super::FREE;
use crate::backend::lease::{LeaseBackend, LeaseKey};
use diesel::connection::{LoadConnection, TransactionManager};
use diesel::pg::Pg;
use diesel::prelude::*;

job_db::statement! {
    // One statement. SKIP LOCKED, since a row that a transaction holds would be waited for.
    struct Lease<'a> on Pg { name: &'a str => Text, owner: &'a str => Text, ttl: i64 => BigInt } -> BigInt;
    "WITH free AS MATERIALIZED (
       SELECT name FROM locks WHERE name = " name " AND " {FREE} " FOR UPDATE SKIP LOCKED
     )
     UPDATE locks l SET token = token + 1, owner = " owner ", acquired_at = clock_timestamp(),
       expires_at = clock_timestamp() + " ttl " * interval '1 microsecond'
     FROM free WHERE l.name = free.name RETURNING l.token"
}

job_db::statement! {
    struct Renew<'a> on Pg {
        name: &'a str => Text, owner: &'a str => Text, token: i64 => BigInt, ttl: i64 => BigInt
    } -> ();
    "UPDATE locks SET expires_at = clock_timestamp() + " ttl " * interval '1 microsecond'
     WHERE name = " name " AND token = " token " AND owner = " owner " AND expires_at IS NOT NULL"
}

job_db::statement! {
    struct Release<'a> on Pg {
        name: &'a str => Text, owner: &'a str => Text, token: i64 => BigInt, at_least: i64 => BigInt
    } -> ();
    "UPDATE locks SET expires_at = CASE
       WHEN acquired_at + " at_least " * interval '1 microsecond' > clock_timestamp()
       THEN acquired_at + " at_least " * interval '1 microsecond' END
     WHERE name = " name " AND token = " token " AND owner = " owner " AND expires_at IS NOT NULL"
}

/// A limit below would end sessions that are only slow.
const SHORTEST_LIMIT_MILLIS: i64 = 1000;

impl LeaseBackend for Pg {
    fn at_once<C, T>(conn: &mut C, ttl: i64, work: impl FnOnce(&mut C) -> QueryResult<T>) -> QueryResult<T>
    where
        C: LoadConnection<Backend = Self>,
    {
        let millis = (ttl / 1000).clamp(SHORTEST_LIMIT_MILLIS, i32::MAX.into());
        let result = C::TransactionManager::begin_transaction(conn).and_then(|()| {
            // A transaction, since behind a proxy a statement's preparation and its execution could reach two sessions.
            conn.batch_execute(&format!(
                "SET TRANSACTION ISOLATION LEVEL READ COMMITTED;
                 SET LOCAL idle_in_transaction_session_timeout = {millis}"
            ))?;
            let value = work(conn)?;
            C::TransactionManager::commit_transaction(conn)?;
            Ok(value)
        });
        if result.is_err() {
            job_db::roll_back_to(conn, 0);
        }
        result
    }

    fn lease<C>(conn: &mut C, name: &str, owner: &str, ttl: i64) -> QueryResult<Option<i64>>
    where
        C: LoadConnection<Backend = Self>,
    {
        Lease { name, owner, ttl }.get_result(conn).optional()
    }

    fn renew<C>(conn: &mut C, key: LeaseKey<'_>, ttl: i64) -> QueryResult<bool>
    where
        C: LoadConnection<Backend = Self>,
    {
        let LeaseKey { name, owner, token } = key;
        let renew = Renew {
            name,
            owner,
            token,
            ttl,
        };
        Ok(renew.execute(conn)? == 1)
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
        Ok(release.execute(conn)? == 1)
    }
}
