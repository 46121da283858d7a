use crate::Key;
use crate::backend::{Described, Lock, PartitionBackend, Take};
use crate::scan::Lexis;
use crate::sql::{runners, stamp};
use diesel::connection::{LoadConnection, TransactionManager};
use diesel::mysql::Mysql;
use diesel::prelude::*;
use diesel::result::{DatabaseErrorKind, Error};
use diesel::sql_types::{BigInt, Nullable, Text};

stamp!(Mysql);

#[derive(QueryableByName)]
struct Row {
    #[diesel(sql_type = Text)]
    identity: String,
    #[diesel(sql_type = Nullable<Text>)]
    key_type: Option<String>,
    #[diesel(sql_type = BigInt)]
    is_unique: i64,
    #[diesel(sql_type = BigInt)]
    locks_nothing: i64,
}

job_db::statement! {
    struct GetLock<'a> on Mysql { name: &'a str => Text } -> Nullable<BigInt>;
    "SELECT GET_LOCK(" name ", 0)"
}

job_db::statement! {
    struct ReleaseLock<'a> on Mysql { name: &'a str => Text } -> Nullable<BigInt>;
    "SELECT RELEASE_LOCK(" name ")"
}

/// Names of GET_LOCK are server-wide and at most 64 characters long; the database's name is in the hash.
fn lock_name(lock: &Lock) -> String {
    format!("gatun_partition_{:012x}_{}", lock.namespace, lock.number)
}

/// GET_LOCK says 1 for taken, 0 for somebody else's, and NULL when it could not tell, as when it ran out of memory or was
/// interrupted; a deadlock among such locks is an error of its own, which [`Database::fault`](job_db::Database::fault) knows.
fn taken(answer: Option<i64>) -> QueryResult<Take> {
    match answer {
        Some(1) => Ok(Take::Taken),
        Some(0) => Ok(Take::Busy),
        _ => Err(Error::DatabaseError(
            DatabaseErrorKind::SerializationFailure,
            Box::new("GET_LOCK could not tell whether the lock is free".to_owned()),
        )),
    }
}

const INTEGERS: &[&str] = &[
    "tinyint",
    "smallint",
    "mediumint",
    "int",
    "bigint",
    "decimal",
    "year",
];
const BYTES: &[&str] = &[
    "binary",
    "varbinary",
    "tinyblob",
    "blob",
    "mediumblob",
    "longblob",
];
const TEXTS: &[&str] = &[
    "char",
    "varchar",
    "tinytext",
    "text",
    "mediumtext",
    "longtext",
    "uuid",
    "inet4",
    "inet6",
];

impl PartitionBackend for Mysql {
    const BIGINT: &'static str = "signed";
    const LOCK_ROWS: &'static str = " FOR UPDATE SKIP LOCKED";
    const LEXIS: Lexis = Lexis {
        is_placeholder: |char, _| char == '?',
        quotes: &['\'', '"', '`'],
        has_backslashes: true,
        has_hashes: true,
        is_nested: false,
        has_brackets: false,
    };
    const QUOTE: char = '`';

    fn key_as_text(kind: Key, key: &str) -> String {
        match kind {
            Key::Integer => format!("CAST({key} AS char)"),
            Key::Uuid => format!("HEX({key})"),
            Key::Text => key.to_owned(),
        }
    }

    fn key_as_number(kind: Key, key: &str) -> String {
        match kind {
            Key::Integer => key.to_owned(),
            Key::Uuid | Key::Text => format!("CRC32({key})"),
        }
    }

    /// The server compares others in one way, and reads or sorts them in another: ENUM and SET by the places of their values, BIT
    /// by its number, and texts beside an integer as numbers. Numbers and dates it sends in binary, and not as text.
    fn suits(kind: Key, key_type: &str) -> bool {
        let types: &[&str] = match kind {
            Key::Integer => INTEGERS,
            Key::Uuid => BYTES,
            Key::Text => TEXTS,
        };
        types.contains(&key_type) || kind == Key::Text && BYTES.contains(&key_type)
    }

    fn accepted(kind: Key) -> &'static str {
        match kind {
            Key::Integer => "TINYINT to BIGINT, YEAR, or DECIMAL with whole numbers of 64 bits",
            Key::Uuid => "BINARY(16), VARBINARY or BLOB with 16 bytes",
            Key::Text => {
                "CHAR, VARCHAR, TEXT, or BINARY, VARBINARY and BLOB with UTF-8; on MariaDB UUID, INET4 and INET6 too"
            }
        }
    }

    fn set_up<C>(conn: &mut C) -> QueryResult<()>
    where
        C: LoadConnection<Backend = Self>,
    {
        // The language in which faults are known, since Diesel does not pass the error's number on; and the level of batches,
        // whatever the one who opened the connection has set.
        conn.batch_execute(
            "SET SESSION lc_messages = 'en_US'; SET SESSION TRANSACTION ISOLATION LEVEL READ COMMITTED",
        )
    }

    fn describe<C>(conn: &mut C, table: &[&str], key: &str) -> QueryResult<Option<Described>>
    where
        C: LoadConnection<Backend = Self>,
    {
        let (schema, name) = match *table {
            [schema, name] => (Some(schema), name),
            _ => (None, table[0]),
        };
        let row: Option<Row> = diesel::sql_query(
            "SELECT t.table_schema AS identity, c.data_type AS key_type,
               -- Where the start of a text is unique, the text is.
               CAST(EXISTS (SELECT 1 FROM information_schema.statistics s
                            WHERE s.table_schema = t.table_schema AND s.table_name = t.table_name AND s.non_unique = 0
                            GROUP BY s.index_name
                            HAVING count(*) = 1 AND max(s.column_name) = c.column_name) AS signed) AS is_unique,
               -- A view that is not merged into the statement is a copy of the rows.
               CAST(EXISTS (SELECT 1 FROM information_schema.views v
                            WHERE v.table_schema = t.table_schema AND v.table_name = t.table_name
                              AND v.is_updatable = 'NO') AS signed) AS locks_nothing
             FROM information_schema.tables t
             LEFT JOIN information_schema.columns c
               ON c.table_schema = t.table_schema AND c.table_name = t.table_name AND c.column_name = ?
             WHERE t.table_schema = COALESCE(?, DATABASE()) AND t.table_name = ?",
        )
        .bind::<Text, _>(key)
        .bind::<Nullable<Text>, _>(schema)
        .bind::<Text, _>(name)
        .get_result(conn)
        .optional()?;
        Ok(row.map(|row| Described {
            identity: row.identity,
            key_type: row.key_type,
            is_unique: row.is_unique != 0,
            locks_nothing: row.locks_nothing != 0,
        }))
    }

    fn begin<C>(conn: &mut C, lock: &Lock) -> QueryResult<Take>
    where
        C: LoadConnection<Backend = Self>,
    {
        let take = taken(
            GetLock {
                name: &lock_name(lock),
            }
            .get_result(conn)?,
        )?;
        if take == Take::Taken {
            C::TransactionManager::begin_transaction(conn)?;
        }
        Ok(take)
    }

    fn release<C>(conn: &mut C, lock: &Lock) -> QueryResult<()>
    where
        C: LoadConnection<Backend = Self>,
    {
        // What it says does not matter: the lock is not ours any more, now or for longer already.
        ReleaseLock {
            name: &lock_name(lock),
        }
        .get_result::<Option<i64>>(conn)
        .map(drop)
    }

    runners!();
}

#[cfg(test)]
mod tests {
    use super::{Lock, Take, lock_name, taken};
    use diesel::mysql::Mysql;
    use job_db::{Database, Fault};

    #[test]
    fn the_answers_of_get_lock_are_told_apart() {
        assert_eq!(taken(Some(1)).unwrap(), Take::Taken);
        assert_eq!(taken(Some(0)).unwrap(), Take::Busy);
        assert_eq!(Mysql::fault(&taken(None).unwrap_err()), Fault::Contended);
        let deadlock = "Deadlock found when trying to get user-level lock; try rolling back transaction";
        assert_eq!(Mysql::fault_of_message(deadlock), Fault::Contended);
    }

    #[test]
    fn the_longest_name_of_a_lock_fits() {
        let lock = Lock {
            namespace: 0xffff_ffff_ffff,
            number: u16::MAX,
            table: "x".repeat(64),
            key: String::new(),
        };
        assert!(lock_name(&lock).len() <= 64);
    }
}
