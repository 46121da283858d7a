//! Reaches for a lock's row, and writes nothing to it.

use super::limit::with_no_wait_limit;
use super::{FREE, token};
use crate::backend::{LockBackend, RowLock};
use diesel::connection::LoadConnection;
use diesel::mysql::Mysql;
use diesel::prelude::*;
use diesel::result::Error;
use job_db::{Database, Fault};

job_db::statement! {
    struct LockRowWaiting<'a> on Mysql { name: &'a [u8] => Binary } -> (BigInt, Nullable<Text>, Bool);
    "SELECT token, TRIM(TRAILING CONCAT('/', CONNECTION_ID()) FROM owner), " {FREE} "
     FROM locks WHERE name = " name " FOR UPDATE"
}

job_db::statement! {
    struct LockRowAtOnce<'a> on Mysql { name: &'a [u8] => Binary } -> (BigInt, Nullable<Text>, Bool);
    "SELECT token, TRIM(TRAILING CONCAT('/', CONNECTION_ID()) FROM owner), " {FREE} "
     FROM locks WHERE name = " name "
     FOR UPDATE SKIP LOCKED"
}

job_db::statement! {
    struct LockRowOrFail<'a> on Mysql { name: &'a [u8] => Binary } -> (BigInt, Nullable<Text>, Bool);
    "SELECT token, TRIM(TRAILING CONCAT('/', CONNECTION_ID()) FROM owner), " {FREE} "
     FROM locks WHERE name = " name " FOR UPDATE NOWAIT"
}

/// Token, owner, and whether it is free.
pub(super) type Row = (i64, Option<String>, bool);

/// Waits for the row as long as it must.
pub(super) fn lock_patiently<C>(conn: &mut C, name: &str) -> QueryResult<RowLock>
where
    C: LoadConnection<Backend = Mysql>,
{
    let waiting = LockRowWaiting {
        name: name.as_bytes(),
    };
    let row: Option<Row> = with_no_wait_limit(conn, |conn| waiting.get_result(conn).optional())?;
    row.map_or(Ok(RowLock::Missing), |row| taken(conn, name, row))
}

/// Waits for nobody.
pub(super) fn lock_at_once<C>(conn: &mut C, name: &str) -> QueryResult<RowLock>
where
    C: LoadConnection<Backend = Mysql>,
{
    match lock_if_free(conn, name)? {
        Some(row) => taken(conn, name, row),
        None => held_or_missing(conn, name),
    }
}

/// Waits for nobody. `None`: another has it, or there is no row.
pub(super) fn lock_if_free<C>(conn: &mut C, name: &str) -> QueryResult<Option<Row>>
where
    C: LoadConnection<Backend = Mysql>,
{
    LockRowAtOnce {
        name: name.as_bytes(),
    }
    .get_result(conn)
    .optional()
}

/// A locking read sees what is committed now, and so does an UPDATE. Where a plain read sees something else, the closure
/// would work on a snapshot from before the last holder's commit.
fn taken<C>(conn: &mut C, name: &str, row: Row) -> QueryResult<RowLock>
where
    C: LoadConnection<Backend = Mysql>,
{
    let plain = token(conn, name)?;
    let (token, owner, is_free) = row;
    Ok(if !is_free {
        RowLock::Leased
    } else if plain == Some(token) {
        RowLock::Taken { token, owner }
    } else {
        RowLock::Stale
    })
}

/// Tells apart why SKIP LOCKED has found nothing. A plain read would do so too, but at REPEATABLE READ it would fix the
/// caller's snapshot too early, and at SERIALIZABLE it would wait for the holder.
fn held_or_missing<C>(conn: &mut C, name: &str) -> QueryResult<RowLock>
where
    C: LoadConnection<Backend = Mysql>,
{
    let result = LockRowOrFail {
        name: name.as_bytes(),
    }
    .get_result(conn)
    .optional();
    match result {
        Ok(Some(row)) => taken(conn, name, row),
        Ok(None) => Ok(RowLock::Missing),
        Err(error) if Mysql::was_cancelled(&error) => Err(error),
        Err(Error::DatabaseError(_, info)) if refuses_to_wait(info.message()) => Ok(RowLock::Held),
        // Perhaps the same in another language.
        Err(_) if token(conn, name)?.is_some() => Ok(RowLock::Held),
        Err(error) => Err(error),
    }
}

fn refuses_to_wait(message: &str) -> bool {
    message.contains("NOWAIT") || Mysql::fault_of_message(message) == Fault::Contended
}
