use crate::Key;
use crate::backend::{Described, Lock, PartitionBackend, Take};
use crate::scan::Lexis;
use crate::sql::{STRANGE, runners, stamp};
use diesel::connection::{LoadConnection, TransactionManager};
use diesel::prelude::*;
use diesel::result::Error;
use diesel::sql_types::{BigInt, Text};
use diesel::sqlite::Sqlite;
use job_db::{Database, Fault, roll_back_to};
use std::time::{Duration, Instant};

stamp!(Sqlite);

/// How long to try for the file's one write lock, before other things, such as a stop, are looked at.
const PATIENCE: Duration = Duration::from_secs(1);

/// What COMMIT and single statements wait for others.
const WAIT: &str = "PRAGMA busy_timeout = 10000";
const NO_WAIT: &str = "PRAGMA busy_timeout = 0";

#[derive(QueryableByName)]
struct Columns {
    #[diesel(sql_type = BigInt)]
    all_columns: i64,
    #[diesel(sql_type = BigInt)]
    keys: i64,
    #[diesel(sql_type = BigInt)]
    is_unique: i64,
}

/// Diesel's immediate transactions are for the bare SqliteConnection only. A first statement that writes takes the lock as
/// well, also where it changes no row.
fn try_begin<C>(conn: &mut C, lock: &Lock) -> QueryResult<()>
where
    C: LoadConnection<Backend = Sqlite>,
{
    C::TransactionManager::begin_transaction(conn)?;
    let Lock { table, key, .. } = lock;
    conn.batch_execute(&format!("UPDATE {table} SET {key} = {key} WHERE 0"))
}

impl PartitionBackend for Sqlite {
    const BIGINT: &'static str = "integer";
    // The transaction has the file for itself.
    const LOCK_ROWS: &'static str = "";
    const ONE_LOCK: bool = true;
    const LEXIS: Lexis = Lexis {
        is_placeholder: |char, next| {
            char == '?'
                || (matches!(char, '$' | ':' | '@')
                    && next.is_some_and(|next| next.is_alphanumeric() || next == '_'))
        },
        quotes: &['\'', '"', '`'],
        has_backslashes: false,
        has_hashes: false,
        is_nested: false,
        has_brackets: true,
    };
    const QUOTE: char = '"';

    fn key_as_text(kind: Key, key: &str) -> String {
        // A column holds values of any class, and those of different classes are compared by that alone.
        let (class, text) = match kind {
            Key::Integer => ("integer", format!("CAST({key} AS text)")),
            Key::Uuid => ("blob", format!("hex({key})")),
            Key::Text => ("text", key.to_owned()),
        };
        let strange = STRANGE.trim_start_matches('\0').replace('\'', "''");
        format!(
            "CASE typeof({key}) WHEN '{class}' THEN {text} WHEN 'null' THEN NULL ELSE char(0) || '{strange}' || typeof({key}) END"
        )
    }

    fn accepted(kind: Key) -> &'static str {
        match kind {
            Key::Integer => "values of the class integer",
            Key::Uuid => "values of the class blob, 16 bytes each",
            Key::Text => "values of the class text",
        }
    }

    fn key_as_number(kind: Key, key: &str) -> String {
        match kind {
            Key::Integer => key.to_owned(),
            // There is no hash, nor a number of hexadecimal digits: the last byte, of the digit's places.
            Key::Uuid => format!(
                "(16 * instr('123456789ABCDEF', substr(hex({key}), -2, 1)) + instr('123456789ABCDEF', substr(hex({key}), -1)))"
            ),
            // Letters that often differ, at both ends and in the middle.
            Key::Text => format!(
                "(length({key}) + 3 * coalesce(unicode({key}), 0) + 7 * coalesce(unicode(substr({key}, -1)), 0)
                  + 31 * coalesce(unicode(substr({key}, -2)), 0) + 127 * coalesce(unicode(substr({key}, length({key}) / 2 + 1)), 0))"
            ),
        }
    }

    fn set_up<C>(conn: &mut C) -> QueryResult<()>
    where
        C: LoadConnection<Backend = Self>,
    {
        conn.batch_execute(WAIT)
    }

    fn describe<C>(conn: &mut C, table: &[&str], key: &str) -> QueryResult<Option<Described>>
    where
        C: LoadConnection<Backend = Self>,
    {
        let (schema, name) = match *table {
            [schema, name] => (schema, name),
            // The first in which it is found: temp, main, or one that was attached.
            _ => ("", table[0]),
        };
        // The key of a rowid table has no index of its own.
        let sql = |schema: &str| {
            format!(
                "SELECT count(*) AS all_columns, coalesce(sum(name = ?1 COLLATE NOCASE), 0) AS keys,
                   coalesce(sum(pk > 0) = 1 AND max(pk > 0 AND name = ?1 COLLATE NOCASE), 0)
                   OR EXISTS (SELECT 1 FROM pragma_index_list(?2{schema}) l
                              WHERE l.\"unique\" AND NOT l.partial
                                AND (SELECT count(*) = 1 AND max(i.name = ?1 COLLATE NOCASE) FROM pragma_index_info(l.name{schema}) i))
                   AS is_unique
                 FROM pragma_table_info(?2{schema})"
            )
        };
        let query = |schema| {
            diesel::sql_query(sql(schema))
                .bind::<Text, _>(key)
                .bind::<Text, _>(name)
        };
        let found: Columns = match schema {
            "" => query("").get_result(conn)?,
            schema => query(", ?3").bind::<Text, _>(schema).get_result(conn)?,
        };
        Ok((found.all_columns > 0).then(|| Described {
            identity: String::new(),
            key_type: (found.keys > 0).then(String::new),
            is_unique: found.is_unique != 0,
            locks_nothing: false,
        }))
    }

    /// A writing transaction would take the file's one lock.
    fn read<C, T, E>(conn: &mut C, work: impl FnOnce(&mut C) -> Result<T, E>) -> Result<T, E>
    where
        C: LoadConnection<Backend = Self>,
        E: From<Error>,
    {
        conn.transaction(work)
    }

    fn begin<C>(conn: &mut C, lock: &Lock) -> QueryResult<Take>
    where
        C: LoadConnection<Backend = Self>,
    {
        // SQLite's own waiting, in steps of up to 100 ms, starves some of those who wait.
        conn.batch_execute(NO_WAIT)?;
        let start = Instant::now();
        let taken = loop {
            match try_begin(conn, lock) {
                Ok(()) => break Ok(Take::Taken),
                Err(error) => {
                    roll_back_to(conn, 0);
                    if Self::fault(&error) != Fault::Contended {
                        break Err(error);
                    }
                    if start.elapsed() > PATIENCE {
                        break Ok(Take::Busy);
                    }
                    std::thread::sleep(Duration::from_micros(fastrand::u64(200..2000)));
                }
            }
        };
        conn.batch_execute(WAIT)?;
        taken
    }

    runners!();
}
