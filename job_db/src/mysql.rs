mod version;

use self::version::{check_version, product};
use crate::database::{Database, Fault, sealed::Sealed};
use crate::{MigrateError, MigrationFile};
use chrono::{DateTime, Utc};
use diesel::connection::LoadConnection;
use diesel::migration::{Migration, MigrationSource};
use diesel::mysql::Mysql;
use diesel::prelude::*;
use diesel_migrations::{EmbeddedMigrations, embed_migrations};
use std::time::Duration;

const MIGRATIONS: EmbeddedMigrations = embed_migrations!("migrations/mysql");

/// How long a process waits for another one's migration.
const MIGRATION_WAIT_SECONDS: u32 = 300;

/// Names of GET_LOCK are server-wide and at most 64 characters long.
const MIGRATION_LOCK: &str = "CONCAT('gatun_migrate_', MD5(COALESCE(DATABASE(), '')))";

crate::statement! {
    struct ExistingTables<'a> on Mysql { names: &'a str => Text } -> Text;
    // One bind for any number of names, none of which has a comma in it.
    "SELECT table_name FROM information_schema.tables
     WHERE table_schema = DATABASE() AND FIND_IN_SET(table_name, " names ")"
}

crate::statement! {
    struct Columns<'a> on Mysql { table: &'a str => Text } -> Text;
    "SELECT column_name FROM information_schema.columns
     WHERE table_schema = DATABASE() AND table_name = " table " ORDER BY ordinal_position"
}

crate::statement! {
    struct MaxVersion on Mysql {} -> BigInt;
    "SELECT COALESCE(MAX(version), 0) FROM job_schema_versions"
}

crate::statement! {
    struct ServerVersion on Mysql {} -> Text;
    "SELECT VERSION()"
}

crate::statement! {
    struct TakeMigrationLock on Mysql { seconds: i64 => BigInt } -> Nullable<BigInt>;
    "SELECT GET_LOCK(" {MIGRATION_LOCK} ", " seconds ")"
}

crate::statement! {
    struct FreeMigrationLock on Mysql {} -> Nullable<BigInt>;
    "SELECT RELEASE_LOCK(" {MIGRATION_LOCK} ")"
}

crate::statement! {
    struct Now on Mysql {} -> crate::Instant;
    "SELECT UTC_TIMESTAMP(6)"
}

impl Sealed for Mysql {}

impl Database for Mysql {
    const NAME: &'static str = "MySQL/MariaDB";
    const JSON_HOLDS_NUL: bool = true;
    const ABORTS_TRANSACTION_ON_ERROR: bool = false;
    const NOW_SQL: &'static str = "UTC_TIMESTAMP(6)";
    const AFTER_SQL: (&'static str, &'static str) = ("UTC_TIMESTAMP(6) + INTERVAL ", " MICROSECOND");
    const MIGRATION_FILES: &'static [MigrationFile] = migration_files!("mysql": "00000000000001_gatun");

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
        let seconds = statement_timeout.as_secs().max(1);
        conn.batch_execute(&format!(
            // The language is that of `fault_of_message`.
            "SET SESSION lc_messages = 'en_US';
             SET SESSION TRANSACTION ISOLATION LEVEL READ COMMITTED;
             SET SESSION innodb_lock_wait_timeout = {seconds}"
        ))?;
        let version: String = ServerVersion {}.get_result(conn)?;
        // MySQL has a time limit for SELECT only, and none for a transaction that a suspended process has left open.
        let limit = match product(&version).0 {
            "MariaDB" => {
                format!("SET SESSION max_statement_time = {seconds}, idle_transaction_timeout = {seconds}")
            }
            _ => format!("SET SESSION max_execution_time = {}", seconds * 1000),
        };
        conn.batch_execute(&limit)
    }

    const LIMITS_LOCK_WAITS: bool = false;

    fn write_transaction<C, T, E>(conn: &mut C, work: impl FnOnce(&mut C) -> Result<T, E>) -> Result<T, E>
    where
        C: LoadConnection<Backend = Self>,
        E: From<diesel::result::Error>,
    {
        // It holds for the next transaction only, and fails inside one.
        if crate::transaction_depth(conn) > 0 {
            return crate::savepoint(conn, work);
        }
        conn.batch_execute("SET TRANSACTION ISOLATION LEVEL READ COMMITTED")?;
        conn.transaction(work)
    }

    fn fault_of_message(message: &str) -> Fault {
        // The client libraries of MySQL and MariaDB spell their own errors differently.
        let message = message.to_ascii_lowercase();
        let any = |texts: &[&str]| texts.iter().any(|text| message.contains(text));
        if any(&[
            "deadlock found",
            "lock wait timeout exceeded",
            "could not be acquired immediately",
            "query execution was interrupted",
            "maximum statement execution time exceeded",
            "record has changed since last read",
        ]) {
            Fault::Contended
        } else if any(&[
            "server has gone away",
            "lost connection",
            "server shutdown in progress",
            "can't connect",
            "connection was killed",
            "disconnected by the server",
            "commands out of sync",
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
        let version: String = ServerVersion {}.get_result(conn)?;
        check_version(&version)
    }

    fn existing_tables<C>(conn: &mut C, tables: &[&str]) -> QueryResult<Vec<String>>
    where
        C: LoadConnection<Backend = Self>,
    {
        ExistingTables {
            names: &tables.join(","),
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
        let got: Option<i64> = TakeMigrationLock {
            seconds: MIGRATION_WAIT_SECONDS.into(),
        }
        .get_result(conn)?;
        if got != Some(1) {
            return Err(MigrateError::Busy(MIGRATION_WAIT_SECONDS));
        }
        let result = work(conn);
        let freed = FreeMigrationLock {}.get_result::<Option<i64>>(conn);
        let ran = result?;
        freed?;
        Ok(ran)
    }

    fn migrations() -> Result<Vec<Box<dyn Migration<Self>>>, MigrateError> {
        crate::migrations::embedded(MigrationSource::<Self>::migrations(&MIGRATIONS))
    }
}

#[cfg(test)]
mod tests {
    use super::{Fault, Mysql};
    use crate::Database;

    #[test]
    fn both_client_libraries_tell_of_a_lost_server() {
        for message in [
            "MySQL server has gone away",
            "Server has gone away",
            "Lost connection to MySQL server during query",
            "Lost connection to server during query",
            "The client was disconnected by the server because of inactivity.",
        ] {
            assert_eq!(Mysql::fault_of_message(message), Fault::Disconnected, "{message}");
        }
    }
}
