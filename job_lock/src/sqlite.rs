mod connection;
mod lease;

use crate::backend::{Clash, LockBackend, RowLock};
use crate::row::Columns;
use crate::{LockRow, LockState};
use diesel::connection::{LoadConnection, TransactionManager};
use diesel::prelude::*;
use diesel::result::Error;
use diesel::sqlite::Sqlite;
use job_db::{Database, Fault};
use std::time::{Duration, Instant};

/// The row is under no lease that goes on; the time follows, and a bracket.
const FREE: &str = "(expires_at IS NULL OR expires_at <= ";

job_db::statement! {
    // It writes, so that it takes the file's one write lock: a statement that reads first could not get it later.
    struct LockRowOf<'a> on Sqlite { name: &'a str => Text } -> (BigInt, Nullable<Text>, Bool);
    "UPDATE locks SET token = token WHERE name = " name " RETURNING token, owner, " {FREE} {Sqlite::NOW_SQL} ")"
}

job_db::statement! {
    struct Advance<'a> on Sqlite { name: &'a str => Text, owner: &'a str => Text } -> BigInt;
    "UPDATE locks SET token = token + 1, owner = " owner " || '/' || " {connection::NUMBER} ", acquired_at = " {Sqlite::NOW_SQL} ", expires_at = NULL
     WHERE name = " name " AND " {FREE} {Sqlite::NOW_SQL} ") RETURNING token"
}

job_db::statement! {
    struct Seen<'a> on Sqlite { name: &'a str => Text } -> (BigInt, Text);
    "SELECT token, owner FROM locks WHERE name = " name " AND owner IS NOT NULL"
}

job_db::statement! {
    struct Exists<'a> on Sqlite { name: &'a str => Text } -> Bool;
    "SELECT EXISTS (SELECT 1 FROM locks WHERE name = " name ")"
}

job_db::statement! {
    struct Create<'a> on Sqlite { name: &'a str => Text } -> ();
    "INSERT OR IGNORE INTO locks (name) VALUES (" name ")"
}

job_db::statement! {
    struct List on Sqlite {} -> (
        Text, BigInt, Nullable<Text>, Nullable<job_db::Instant>, Nullable<job_db::Instant>, Bool
    );
    "SELECT name, token, owner, acquired_at, expires_at, coalesce(expires_at > " {Sqlite::NOW_SQL} ", 0)
     FROM locks ORDER BY name"
}

job_db::statement! {
    struct BusyTimeout on Sqlite {} -> Integer;
    "PRAGMA busy_timeout"
}

/// How long to wait for a writer who lets nobody read, which a rollback journal's are at their COMMIT, or longer.
const READ_LIMIT: Option<Duration> = Some(Duration::from_secs(60));

/// SQLite waits only for a transaction that has not read yet, and so cannot be stale.
fn with_busy_timeout<C, T>(
    conn: &mut C,
    limit: Option<Duration>,
    wait: impl FnOnce(&mut C) -> QueryResult<T>,
) -> QueryResult<T>
where
    C: LoadConnection<Backend = Sqlite>,
{
    let millis = limit.map_or(i32::MAX, |limit| {
        i32::try_from(limit.as_micros().div_ceil(1000)).unwrap_or(i32::MAX)
    });
    let before: i32 = BusyTimeout {}.get_result(conn)?;
    conn.batch_execute(&format!("PRAGMA busy_timeout = {millis}"))?;
    let result = wait(conn);
    conn.batch_execute(&format!("PRAGMA busy_timeout = {before}"))?;
    result
}

impl LockBackend for Sqlite {
    // A look costs microseconds there, and busy_timeout, which pauses for up to 100 ms, starves some of those who wait.
    const PAUSE: Duration = Duration::from_millis(1);
    const HAS_QUEUE: bool = false;

    fn begin<C>(conn: &mut C) -> QueryResult<()>
    where
        C: LoadConnection<Backend = Self>,
    {
        C::TransactionManager::begin_transaction(conn)
    }

    fn lock_row<C>(conn: &mut C, name: &str, limit: Option<Duration>) -> QueryResult<RowLock>
    where
        C: LoadConnection<Backend = Self>,
    {
        let start = Instant::now();
        let result: QueryResult<Option<(i64, Option<String>, bool)>> =
            with_busy_timeout(conn, limit, |conn| LockRowOf { name }.get_result(conn).optional());
        match result {
            Ok(Some((token, owner, true))) => Ok(RowLock::Taken {
                token,
                owner: connection::own(conn, owner)?,
            }),
            Ok(Some(_)) => Ok(RowLock::Leased),
            Ok(None) => Ok(RowLock::Missing),
            // An answer before the time was over means that SQLite saw no use in waiting.
            Err(error) if Self::fault(&error) == Fault::Contended => Ok(match limit {
                Some(limit) if start.elapsed() >= limit => RowLock::Held,
                _ => RowLock::Stale,
            }),
            Err(error) => Err(error),
        }
    }

    fn advance<C>(conn: &mut C, name: &str, owner: &str) -> QueryResult<Option<i64>>
    where
        C: LoadConnection<Backend = Self>,
    {
        connection::number(conn)?;
        Advance { name, owner }.get_result(conn).optional()
    }

    fn seen<C>(conn: &mut C, name: &str) -> QueryResult<Option<(i64, String)>>
    where
        C: LoadConnection<Backend = Self>,
    {
        let seen: Option<(i64, String)> =
            with_busy_timeout(conn, READ_LIMIT, |conn| Seen { name }.get_result(conn).optional())?;
        let Some((token, owner)) = seen else {
            return Ok(None);
        };
        Ok(connection::own(conn, Some(owner))?.map(|owner| (token, owner)))
    }

    fn exists<C>(conn: &mut C, name: &str) -> QueryResult<bool>
    where
        C: LoadConnection<Backend = Self>,
    {
        Exists { name }.get_result(conn)
    }

    fn create<C>(conn: &mut C, name: &str) -> QueryResult<bool>
    where
        C: LoadConnection<Backend = Self>,
    {
        Ok(Create { name }.execute(conn)? > 0)
    }

    fn list<C>(conn: &mut C) -> QueryResult<Vec<LockRow>>
    where
        C: LoadConnection<Backend = Self>,
    {
        // What is not committed cannot be seen from outside, and a probe would be a writer itself.
        let rows: Vec<Columns> = with_busy_timeout(conn, READ_LIMIT, |conn| List {}.load(conn))?;
        let row = |columns| LockRow::new(columns, LockState::Unknown);
        Ok(rows.into_iter().map(row).collect())
    }

    fn clash(_: &Error) -> Option<Clash> {
        // There is one lock, so that nobody waits for a second one.
        None
    }

    fn refuses(message: &str) -> bool {
        ["unable to open database file", "file is not a database"]
            .iter()
            .any(|text| message.contains(text))
    }
}
