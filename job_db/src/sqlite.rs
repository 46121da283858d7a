use crate::database::{Database, Fault, sealed::Sealed};
use crate::{MigrateError, MigrationFile};
use chrono::{DateTime, Utc};
use diesel::connection::LoadConnection;
use diesel::migration::{Migration, MigrationSource};
use diesel::prelude::*;
use diesel::sqlite::Sqlite;
use diesel_migrations::{EmbeddedMigrations, embed_migrations};
use std::time::Duration;

const MIGRATIONS: EmbeddedMigrations = embed_migrations!("migrations/sqlite");

/// RETURNING came with it.
const OLDEST: [u32; 2] = [3, 35];

/// SQLite has no function for the time in microseconds; its clock has milliseconds.
const NOW: &str = "(CAST(ROUND((julianday('now') - 2440587.5) * 86400000.0) AS INTEGER) * 1000)";

crate::statement! {
    struct ExistingTable<'a> on Sqlite { name: &'a str => Text } -> Text;
    "SELECT name FROM sqlite_master WHERE type IN ('table', 'view') AND name = " name " COLLATE NOCASE"
}

crate::statement! {
    struct Columns<'a> on Sqlite { table: &'a str => Text } -> Text;
    "SELECT name FROM pragma_table_info(" table ") ORDER BY cid"
}

crate::statement! {
    struct MaxVersion on Sqlite {} -> BigInt;
    "SELECT coalesce(max(version), 0) FROM job_schema_versions"
}

crate::statement! {
    struct ServerVersion on Sqlite {} -> Text;
    "SELECT sqlite_version()"
}

fn check_version(text: &str) -> Result<(), MigrateError> {
    let version: Vec<u32> = text
        .split('.')
        .map(|number| number.parse().unwrap_or(0))
        .collect();
    if version.as_slice() < OLDEST.as_slice() {
        return Err(MigrateError::ServerTooOld {
            server: format!("SQLite {text}"),
            needed: "SQLite 3.35 or later",
        });
    }
    Ok(())
}

crate::statement! {
    struct TakeWriteLock on Sqlite {} -> ();
    "UPDATE job_schema_versions SET version = version WHERE 0"
}

crate::statement! {
    struct Now on Sqlite {} -> crate::Instant;
    "SELECT " {NOW}
}

crate::statement! {
    struct BusyTimeout on Sqlite {} -> BigInt;
    "SELECT timeout FROM pragma_busy_timeout"
}

fn immediate_transaction<C>(
    conn: &mut C,
    work: impl FnOnce(&mut C) -> Result<usize, MigrateError>,
) -> Result<usize, MigrateError>
where
    C: LoadConnection<Backend = Sqlite>,
{
    conn.batch_execute("BEGIN IMMEDIATE")?;
    let result = work(conn).and_then(|ran| {
        conn.batch_execute("COMMIT")?;
        Ok(ran)
    });
    if result.is_err() {
        conn.batch_execute("ROLLBACK")?;
    }
    result
}

impl Sealed for Sqlite {}

impl Database for Sqlite {
    const NAME: &'static str = "SQLite";
    const JSON_HOLDS_NUL: bool = true;
    const ABORTS_TRANSACTION_ON_ERROR: bool = false;
    const NOW_SQL: &'static str = NOW;
    const AFTER_SQL: (&'static str, &'static str) = (
        "(CAST(ROUND((julianday('now') - 2440587.5) * 86400000.0) AS INTEGER) * 1000) + ",
        "",
    );
    const MIGRATION_FILES: &'static [MigrationFile] = migration_files!("sqlite": "00000000000001_gatun");

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
        // busy_timeout first: the change of the journal's mode needs the file for itself.
        let millis = statement_timeout.as_millis().max(1);
        conn.batch_execute(&format!(
            "PRAGMA busy_timeout = {millis}; PRAGMA journal_mode = WAL; PRAGMA synchronous = NORMAL"
        ))
    }

    const LIMITS_LOCK_WAITS: bool = false;

    fn prepare_shared<C>(conn: &mut C) -> QueryResult<()>
    where
        C: LoadConnection<Backend = Self>,
    {
        Self::prepare_session(conn, Duration::from_secs(60))
    }

    fn write_transaction<C, T, E>(conn: &mut C, work: impl FnOnce(&mut C) -> Result<T, E>) -> Result<T, E>
    where
        C: LoadConnection<Backend = Self>,
        E: From<diesel::result::Error>,
    {
        // Diesel's immediate transactions are for the bare SqliteConnection only. A first statement that writes takes
        // the lock as well, and waits for it as long as busy_timeout says; one that reads first would not.
        conn.transaction(|conn| {
            TakeWriteLock {}.execute(conn)?;
            work(conn)
        })
    }

    fn fault_of_message(message: &str) -> Fault {
        let any = |texts: &[&str]| texts.iter().any(|text| message.contains(text));
        if any(&[
            "database is locked",
            "database table is locked",
            "database schema is locked",
        ]) {
            Fault::Contended
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
        let mut found = Vec::new();
        for name in tables {
            found.extend(ExistingTable { name }.load::<String>(conn)?);
        }
        Ok(found)
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
        // By hand, since Diesel's immediate transactions are for the bare SqliteConnection only, and there may be no
        // table yet that a first statement could write to.
        let busy_timeout: i64 = BusyTimeout {}.get_result(conn)?;
        conn.batch_execute("PRAGMA busy_timeout = 60000")?;
        let result = immediate_transaction(conn, work);
        // The connection is the app's, and so are its settings.
        conn.batch_execute(&format!("PRAGMA busy_timeout = {busy_timeout}"))?;
        result
    }

    fn migrations() -> Result<Vec<Box<dyn Migration<Self>>>, MigrateError> {
        crate::migrations::embedded(MigrationSource::<Self>::migrations(&MIGRATIONS))
    }
}

#[cfg(test)]
mod tests {
    use super::check_version;

    #[test]
    fn libraries_that_are_too_old_are_refused_by_name_and_version() {
        assert!(check_version("3.35.0").is_ok());
        assert!(check_version("3.53.2").is_ok());
        let error = check_version("3.9.2").unwrap_err().to_string();
        assert_eq!(error, "SQLite 3.9.2 is too old: Gatun needs SQLite 3.35 or later");
    }
}
