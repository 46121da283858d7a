use super::FREE;
use super::limit::{with_no_wait_limit, with_shortest_wait_limit};
use crate::backend::lease::{LeaseBackend, LeaseKey};
use diesel::connection::LoadConnection;
use diesel::mysql::Mysql;
use diesel::prelude::*;

job_db::statement! {
    // An UPDATE would wait for a holder.
    struct Look<'a> on Mysql { name: &'a [u8] => Binary } -> BigInt;
    "SELECT token FROM locks WHERE name = " name " AND " {FREE} " FOR UPDATE SKIP LOCKED"
}

job_db::statement! {
    struct Lease<'a> on Mysql { name: &'a [u8] => Binary, owner: &'a str => Text, ttl: i64 => BigInt } -> ();
    "UPDATE locks SET token = token + 1, owner = " owner ", acquired_at = UTC_TIMESTAMP(6),
       expires_at = UTC_TIMESTAMP(6) + INTERVAL " ttl " MICROSECOND
     WHERE name = " name " AND " {FREE}
}

job_db::statement! {
    struct TokenOf<'a> on Mysql { name: &'a [u8] => Binary, owner: &'a str => Text } -> BigInt;
    "SELECT token FROM locks WHERE name = " name " AND owner = " owner
}

job_db::statement! {
    struct Renew<'a> on Mysql {
        name: &'a [u8] => Binary, owner: &'a str => Text, token: i64 => BigInt, ttl: i64 => BigInt
    } -> ();
    "UPDATE locks SET expires_at = UTC_TIMESTAMP(6) + INTERVAL " ttl " MICROSECOND
     WHERE name = " name " AND token = " token " AND owner = " owner " AND expires_at IS NOT NULL"
}

job_db::statement! {
    struct Release<'a> on Mysql {
        name: &'a [u8] => Binary, owner: &'a str => Text, token: i64 => BigInt, at_least: i64 => BigInt
    } -> ();
    "UPDATE locks SET expires_at =
       IF(acquired_at + INTERVAL " at_least " MICROSECOND > UTC_TIMESTAMP(6),
          acquired_at + INTERVAL " at_least " MICROSECOND, NULL)
     WHERE name = " name " AND token = " token " AND owner = " owner " AND expires_at IS NOT NULL"
}

/// A session may have autocommit off. The first statement fails where it is in a transaction then, which the second one would
/// commit.
const COMMIT_EACH: &str = "SET TRANSACTION ISOLATION LEVEL READ COMMITTED;
    SET @gatun_autocommit = @@SESSION.autocommit, SESSION autocommit = 1";
const RESTORE_AUTOCOMMIT: &str = "SET SESSION autocommit = @gatun_autocommit";

impl LeaseBackend for Mysql {
    fn at_once<C, T>(conn: &mut C, _ttl: i64, work: impl FnOnce(&mut C) -> QueryResult<T>) -> QueryResult<T>
    where
        C: LoadConnection<Backend = Self>,
    {
        // Each statement is committed with itself.
        conn.batch_execute(COMMIT_EACH)?;
        let result = work(conn);
        let restored = conn.batch_execute(RESTORE_AUTOCOMMIT);
        let value = result?;
        restored?;
        Ok(value)
    }

    fn lease<C>(conn: &mut C, name: &str, owner: &str, ttl: i64) -> QueryResult<Option<i64>>
    where
        C: LoadConnection<Backend = Self>,
    {
        let name = name.as_bytes();
        let free: Option<i64> = Look { name }.get_result(conn).optional()?;
        if free.is_none() {
            return Ok(None);
        }
        // Nothing of the look is locked any more, and who has taken the row since is waited for as briefly as the server can.
        match with_shortest_wait_limit(conn, |conn| Lease { name, owner, ttl }.execute(conn))? {
            0 => Ok(None),
            _ => TokenOf { name, owner }.get_result(conn).optional(),
        }
    }

    fn renew<C>(conn: &mut C, key: LeaseKey<'_>, ttl: i64) -> QueryResult<bool>
    where
        C: LoadConnection<Backend = Self>,
    {
        let renew = Renew {
            name: key.name.as_bytes(),
            owner: key.owner,
            token: key.token,
            ttl,
        };
        Ok(renew.execute(conn)? == 1)
    }

    fn fence<C>(conn: &mut C, key: LeaseKey<'_>, ttl: i64) -> QueryResult<bool>
    where
        C: LoadConnection<Backend = Self>,
    {
        with_no_wait_limit(conn, |conn| Self::renew(conn, key, ttl))
    }

    fn release<C>(conn: &mut C, key: LeaseKey<'_>, at_least: i64) -> QueryResult<bool>
    where
        C: LoadConnection<Backend = Self>,
    {
        let release = Release {
            name: key.name.as_bytes(),
            owner: key.owner,
            token: key.token,
            at_least,
        };
        Ok(release.execute(conn)? == 1)
    }
}
