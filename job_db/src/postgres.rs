use crate::database::{Database, Fault, sealed::Sealed};
use crate::{MigrateError, MigrationFile};
use chrono::{DateTime, Utc};
use diesel::connection::LoadConnection;
use diesel::migration::{Migration, MigrationSource};
use diesel::pg::Pg;
use diesel::prelude::*;
use diesel_migrations::{EmbeddedMigrations, embed_migrations};
use std::time::Duration;

const MIGRATIONS: EmbeddedMigrations = embed_migrations!("migrations/postgres");

/// The oldest server: `plan_cache_mode` and inlined CTEs came with it.
const OLDEST: i32 = 120_000;

/// Plans are made once, perhaps while a table is empty, or full but not analysed yet, and a scan of all or a sort of all is
/// taken for the cheapest; they must serve as it grows. Without scans a plan may look so dear that it is compiled, which
/// takes longer than any statement of ours.
const PLANS: [&str; 4] = ["enable_seqscan", "enable_bitmapscan", "enable_sort", "jit"];

fn plans(scope: &str) -> String {
    PLANS
        .map(|setting| format!("SET {scope}{setting} = off; "))
        .concat()
}

crate::statement! {
    struct ExistingTables<'a> on Pg { names: Vec<&'a str> => Array<Text> } -> Text;
    "SELECT relname::text FROM pg_catalog.pg_class
     WHERE relnamespace = (SELECT oid FROM pg_catalog.pg_namespace WHERE nspname = current_schema()) AND relkind IN ('r', 'p', 'v', 'm', 'f') AND relname = ANY (" names ")"
}

crate::statement! {
    struct Columns<'a> on Pg { table: &'a str => Text } -> Text;
    "SELECT attname::text FROM pg_catalog.pg_attribute a JOIN pg_catalog.pg_class c ON c.oid = a.attrelid
     WHERE c.relnamespace = (SELECT oid FROM pg_catalog.pg_namespace WHERE nspname = current_schema()) AND c.relname = " table "
       AND a.attnum > 0 AND NOT a.attisdropped ORDER BY a.attnum"
}

crate::statement! {
    struct IsAlone on Pg {} -> Bool;
    "SELECT now() = statement_timestamp()"
}

crate::statement! {
    struct MaxVersion on Pg {} -> BigInt;
    "SELECT coalesce(max(version), 0) FROM job_schema_versions"
}

crate::statement! {
    struct ServerVersion on Pg {} -> (Integer, Text, Text);
    "SELECT current_setting('server_version_num')::int, current_setting('server_version'), current_setting('server_encoding')"
}

fn check_version(number: i32, version: &str) -> Result<(), MigrateError> {
    if number < OLDEST {
        return Err(MigrateError::ServerTooOld {
            server: format!("PostgreSQL {version}"),
            needed: "PostgreSQL 12 or later",
        });
    }
    Ok(())
}

crate::statement! {
    struct Now on Pg {} -> crate::Instant;
    "SELECT clock_timestamp()"
}

impl Sealed for Pg {}

impl Database for Pg {
    const NAME: &'static str = "PostgreSQL";
    const JSON_HOLDS_NUL: bool = false;
    const ABORTS_TRANSACTION_ON_ERROR: bool = true;
    // Not now(), which stands still in a caller's long transaction.
    const NOW_SQL: &'static str = "statement_timestamp()";
    const AFTER_SQL: (&'static str, &'static str) =
        ("statement_timestamp() + ", " * interval '1 microsecond'");
    const MIGRATION_FILES: &'static [MigrationFile] = migration_files!("postgres": "00000000000001_gatun");

    fn now<C>(conn: &mut C) -> QueryResult<DateTime<Utc>>
    where
        C: LoadConnection<Backend = Self>,
    {
        Now {}.get_result(conn)
    }

    fn prepare_session<C>(conn: &mut C, statement_timeout: Duration) -> QueryResult<()>
    where
        C: LoadConnection<Backend = Self>,
    {
        let millis = statement_timeout.as_millis().max(1);
        let plans = plans("");
        conn.batch_execute(&format!(
            "{plans} SET statement_timeout = {millis}; SET lock_timeout = {millis};
             SET idle_in_transaction_session_timeout = {millis};
             SET default_transaction_isolation = 'read committed';
             SET plan_cache_mode = 'force_generic_plan'"
        ))
    }

    const LIMITS_LOCK_WAITS: bool = true;

    fn limit_lock_waits<C>(conn: &mut C, limit: Duration) -> QueryResult<()>
    where
        C: LoadConnection<Backend = Self>,
    {
        conn.batch_execute(&format!("SET lock_timeout = {}", limit.as_millis().max(1)))
    }

    fn end_forgotten_transaction<C>(conn: &mut C)
    where
        C: LoadConnection<Backend = Self>,
    {
        // A ROLLBACK for nothing is a warning in the server's log. In a statement's own transaction the two clocks agree.
        if !matches!(IsAlone {}.get_result(conn), Ok(true)) {
            let _ = conn.batch_execute("ROLLBACK");
        }
    }

    fn prepare_transaction<C>(conn: &mut C, statement_timeout: Duration) -> QueryResult<()>
    where
        C: LoadConnection<Backend = Self>,
    {
        let millis = statement_timeout.as_millis().max(1);
        let plans = plans("LOCAL ");
        conn.batch_execute(&format!(
            "{plans} SET LOCAL statement_timeout = {millis}; SET LOCAL lock_timeout = {millis}"
        ))
    }

    fn write_transaction<C, T, E>(conn: &mut C, work: impl FnOnce(&mut C) -> Result<T, E>) -> Result<T, E>
    where
        C: LoadConnection<Backend = Self>,
        E: From<diesel::result::Error>,
    {
        let outermost = crate::transaction_depth(conn) == 0;
        conn.transaction(|conn| {
            if outermost {
                conn.batch_execute("SET TRANSACTION ISOLATION LEVEL READ COMMITTED")?;
            }
            work(conn)
        })
    }

    fn fault_of_message(message: &str) -> Fault {
        let any = |texts: &[&str]| texts.iter().any(|text| message.contains(text));
        if any(&[
            "deadlock detected",
            "could not serialize access",
            "could not obtain lock",
            "due to lock timeout",
            "due to statement timeout",
        ]) {
            Fault::Contended
        } else if any(&[
            "server closed the connection",
            "terminating connection",
            "no connection to the server",
            "connection not open",
            "connection is closed",
            "the database system is",
            "could not connect",
            "could not receive data from server",
            "could not send data to server",
            "SSL connection has been closed",
            "SSL SYSCALL error",
            "connection to server",
        ]) {
            Fault::Disconnected
        } else {
            Fault::Other
        }
    }

    fn check_server<C>(conn: &mut C) -> Result<(), MigrateError>
    where
        C: LoadConnection<Backend = Self>,
    {
        let (number, version, encoding): (i32, String, String) = ServerVersion {}.get_result(conn)?;
        if encoding != "UTF8" {
            return Err(MigrateError::Encoding(encoding));
        }
        check_version(number, &version)
    }

    fn existing_tables<C>(conn: &mut C, tables: &[&str]) -> QueryResult<Vec<String>>
    where
        C: LoadConnection<Backend = Self>,
    {
        ExistingTables {
            names: tables.to_vec(),
        }
        .load(conn)
    }

    fn columns<C>(conn: &mut C, table: &str) -> QueryResult<Vec<String>>
    where
        C: LoadConnection<Backend = Self>,
    {
        Columns { table }.load(conn)
    }

    fn max_version<C>(conn: &mut C) -> Result<i64, MigrateError>
    where
        C: LoadConnection<Backend = Self>,
    {
        Ok(MaxVersion {}.get_result(conn)?)
    }

    fn migrate_alone<C>(
        conn: &mut C,
        work: impl FnOnce(&mut C) -> Result<usize, MigrateError>,
    ) -> Result<usize, MigrateError>
    where
        C: LoadConnection<Backend = Self>,
    {
        conn.transaction(|conn| {
            // A higher level would look at the tables with a snapshot from before the wait for the lock.
            conn.batch_execute(
                "SET TRANSACTION ISOLATION LEVEL READ COMMITTED;
                 SELECT pg_advisory_xact_lock(hashtext('gatun'), hashtext(current_schema()))",
            )?;
            work(conn)
        })
    }

    fn migrations() -> Result<Vec<Box<dyn Migration<Self>>>, MigrateError> {
        crate::migrations::embedded(MigrationSource::<Self>::migrations(&MIGRATIONS))
    }
}

#[cfg(test)]
mod tests {
    use super::check_version;

    #[test]
    fn servers_that_are_too_old_are_refused_by_name_and_version() {
        assert!(check_version(120_000, "12.0").is_ok());
        assert!(check_version(180_001, "18.1 (Debian 18.1-1)").is_ok());
        let error = check_version(110_022, "11.22").unwrap_err().to_string();
        assert_eq!(
            error,
            "PostgreSQL 11.22 is too old: Gatun needs PostgreSQL 12 or later"
        );
    }
}
