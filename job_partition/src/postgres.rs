use crate::backend::{Described, Lock, PartitionBackend, Take};
use crate::scan::Lexis;
use crate::sql::{Part, Sql, runners, stamp};
use crate::{Key, KeyValue};
use diesel::connection::{LoadConnection, TransactionManager};
use diesel::pg::Pg;
use diesel::prelude::*;
use diesel::sql_types::{Bool, Nullable, Text};

stamp!(Pg);

#[derive(QueryableByName)]
struct Row {
    #[diesel(sql_type = Text)]
    identity: String,
    #[diesel(sql_type = Nullable<Text>)]
    key_type: Option<String>,
    #[diesel(sql_type = Bool)]
    is_unique: bool,
}

job_db::statement! {
    // A statement of its own: one that locks and reads would read with a snapshot from before the lock. The level is looked
    // at on the way, and a setting is made that goes with the transaction.
    struct TryLock on Pg { key: i64 => BigInt } -> (Bool, Bool, Text);
    "SELECT pg_try_advisory_xact_lock(" key "), current_setting('transaction_isolation') = 'read committed',
            set_config('gatun.batch', 'open', true)"
}

/// Types that are no integers and no UUIDs, as `format_type` names them, and types of numbers.
const NEITHER_INTEGER_NOR_UUID: &[&str] = &[
    "text",
    "character",
    "character varying",
    "bytea",
    "date",
    "boolean",
    "oid",
];
const NUMBERS: &[&str] = &[
    "smallint",
    "integer",
    "bigint",
    "numeric",
    "real",
    "double precision",
];

/// The key of the advisory lock: the namespace in the upper 48 bits, the partition's number in the lower 16.
fn advisory_key(lock: &Lock) -> i64 {
    (lock.namespace << 16 | u64::from(lock.number)).cast_signed()
}

impl PartitionBackend for Pg {
    const BIGINT: &'static str = "bigint";
    // NO KEY is what an UPDATE takes that leaves the key alone: rows of other tables that refer to these can be inserted
    // meanwhile. Among workers it excludes as FOR UPDATE does.
    const LOCK_ROWS: &'static str = " FOR NO KEY UPDATE SKIP LOCKED";
    const LEXIS: Lexis = Lexis {
        // A lonely question mark is an operator.
        is_placeholder: |char, next| char == '$' && next.is_some_and(|next| next.is_ascii_digit()),
        quotes: &['\'', '"'],
        has_backslashes: false,
        has_hashes: false,
        is_nested: true,
        has_brackets: false,
    };
    const QUOTE: char = '"';
    // One round trip less than a release of the savepoint.
    const TELLS_OF_END: &'static str =
        " UNION ALL SELECT '', 1 WHERE current_setting('gatun.batch', true) IS DISTINCT FROM 'open'";

    fn key_as_text(_: Key, key: &str) -> String {
        format!("CAST({key} AS text)")
    }

    fn key_as_number(kind: Key, key: &str) -> String {
        match kind {
            Key::Integer => key.to_owned(),
            Key::Uuid => format!("uuid_hash({key})"),
            Key::Text => format!("hashtext(CAST({key} AS text))"),
        }
    }

    fn suits(kind: Key, key_type: &str) -> bool {
        // A domain has a name of its own, and may be anything.
        let base = key_type.split('(').next().unwrap_or(key_type);
        let is_neither = NEITHER_INTEGER_NOR_UUID.contains(&base) || base.starts_with("timestamp");
        let is_number = NUMBERS.contains(&base);
        match kind {
            Key::Integer => !is_neither && key_type != "uuid",
            Key::Uuid => !is_neither && !is_number,
            Key::Text => true,
        }
    }

    fn accepted(kind: Key) -> &'static str {
        match kind {
            Key::Integer => "smallint, integer, bigint, or numeric with whole numbers of 64 bits",
            Key::Uuid => "uuid",
            Key::Text => "text, varchar, or any other type whose text reads as the same value",
        }
    }

    fn push_key(sql: &mut Sql, key: &KeyValue, key_type: &str) {
        match key {
            KeyValue::Integer(number) => sql.bind(Part::Integer(*number)),
            KeyValue::Uuid(_) => sql
                .text("CAST(")
                .bind(Part::String(key.to_string()))
                .text(" AS uuid)"),
            // Of the column's own type, be it citext or a domain, so that its own operators and its index are used.
            KeyValue::Text(text) => sql
                .text("CAST(")
                .bind(Part::String(text.clone()))
                .text(format!(" AS {key_type})")),
        };
    }

    fn set_up<C>(_conn: &mut C) -> QueryResult<()>
    where
        C: LoadConnection<Backend = Self>,
    {
        // Behind a transaction-pooling proxy a SET would stay with a session that others get next.
        Ok(())
    }

    fn describe<C>(conn: &mut C, table: &[&str], key: &str) -> QueryResult<Option<Described>>
    where
        C: LoadConnection<Backend = Self>,
    {
        let quoted: Vec<String> = table
            .iter()
            .map(|part| format!("\"{}\"", part.replace('"', "\"\"")))
            .collect();
        let row: Option<Row> = diesel::sql_query(
            "SELECT CAST(c.oid AS text) AS identity, format_type(a.atttypid, a.atttypmod) AS key_type,
               EXISTS (SELECT 1 FROM pg_catalog.pg_index i
                       WHERE i.indrelid = c.oid AND i.indisunique AND i.indisvalid AND i.indpred IS NULL
                         AND i.indnkeyatts = 1 AND i.indkey[0] = a.attnum
                         -- Texts that differ may be equal by the column's collation.
                         AND (i.indcollation[0] = a.attcollation
                              OR NOT EXISTS (SELECT 1 FROM pg_catalog.pg_collation l
                                             WHERE l.oid = a.attcollation AND NOT l.collisdeterministic)))
               -- An index of a table is not one of the tables that inherit from it, unless they are its partitions.
               AND (c.relkind = 'p' OR NOT EXISTS (SELECT 1 FROM pg_catalog.pg_inherits h WHERE h.inhparent = c.oid))
               AS is_unique
             FROM pg_catalog.pg_class c
             LEFT JOIN pg_catalog.pg_attribute a
               ON a.attrelid = c.oid AND a.attname = $2 AND a.attnum > 0 AND NOT a.attisdropped
             WHERE c.oid = to_regclass($1)",
        )
        .bind::<Text, _>(quoted.join("."))
        .bind::<Text, _>(key)
        .get_result(conn)
        .optional()?;
        Ok(row.map(|row| Described {
            identity: row.identity,
            key_type: row.key_type,
            is_unique: row.is_unique,
            locks_nothing: false,
        }))
    }

    fn check_open<C>(_conn: &mut C) -> QueryResult<()>
    where
        C: LoadConnection<Backend = Self>,
    {
        Ok(())
    }

    fn begin<C>(conn: &mut C, lock: &Lock) -> QueryResult<Take>
    where
        C: LoadConnection<Backend = Self>,
    {
        let key = advisory_key(lock);
        C::TransactionManager::begin_transaction(conn)?;
        let (mut taken, is_read_committed, _): (bool, bool, String) = TryLock { key }.get_result(conn)?;
        if !is_read_committed {
            // Its snapshot is from before the lock. The level is asked for only where it is not the default, and never set for
            // the session, which is not ours alone behind a proxy.
            C::TransactionManager::rollback_transaction(conn)?;
            C::TransactionManager::begin_transaction(conn)?;
            conn.batch_execute("SET TRANSACTION ISOLATION LEVEL READ COMMITTED")?;
            (taken, _, _) = TryLock { key }.get_result::<(bool, bool, String)>(conn)?;
        }
        if taken {
            return Ok(Take::Taken);
        }
        C::TransactionManager::rollback_transaction(conn)?;
        Ok(Take::Busy)
    }

    runners!();
}

#[cfg(test)]
mod tests {
    use super::{Lock, advisory_key};

    #[test]
    fn the_key_has_the_namespace_above_and_the_number_below() {
        let key = |namespace, number| {
            advisory_key(&Lock {
                namespace,
                number,
                table: String::new(),
                key: String::new(),
            })
        };
        assert_eq!(key(0x1234_5678_9abc, 7), 0x1234_5678_9abc_0007);
        assert_eq!(key(0xffff_ffff_ffff, 0xffff), -1);
    }
}
