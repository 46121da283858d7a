use crate::{Database, DbConnection, transaction_depth};
use diesel::migration::Migration;
use diesel::result::Error;

/// The tables that the migrations make, beside the table of versions.
pub const TABLES: [&str; 9] = [
    "jobs",
    "jobs_scheduled",
    "jobs_new",
    "jobs_processing",
    "jobs_finished",
    "job_failures",
    "unique_keys",
    "workers",
    "locks",
];

const VIEW: &str = "jobs_with_status";
const VERSIONS: &str = "job_schema_versions";
const VERSIONS_COLUMNS: [&str; 2] = ["version", "applied_at"];

/// Why the tables could not be made or brought up to date. In every case the database is as it was before, but for
/// [`MigrateError::Migration`] on MySQL and MariaDB, where the next call goes on from there.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum MigrateError {
    /// The connection is inside a transaction.
    #[error("migrate must not be called inside a transaction: call it at start, on a connection of its own")]
    InTransaction,
    /// A table of one of our names was made by somebody else.
    #[error(
        "the database has a table or view `{0}` that Gatun did not make, and nothing was changed: \
         rename it, or give Gatun a schema or a database of its own"
    )]
    ForeignTable(String),
    /// The database was migrated by a newer version of this library.
    #[error(
        "the database has version {database} of Gatun's tables, and this program knows only up to {binary}: \
         deploy a program with the newer Gatun"
    )]
    NewerSchema {
        /// The version in the database.
        database: i64,
        /// The newest version that this program knows.
        binary: i64,
    },
    /// The database keeps texts in another encoding than UTF-8, which cannot hold every error text and every result.
    #[error("the database's encoding is {0}, and Gatun needs UTF8: create the database with ENCODING 'UTF8'")]
    Encoding(String),
    /// The server lacks what the statements need.
    #[error("{server} is too old: Gatun needs {needed}")]
    ServerTooOld {
        /// The server's name and version.
        server: String,
        /// The oldest versions that serve.
        needed: &'static str,
    },
    /// Another process held the migration lock for too long.
    #[error(
        "another process has been migrating this database for over {0} seconds: try again when it has ended"
    )]
    Busy(u32),
    /// A migration's SQL failed.
    #[error(
        "migration {name} failed: {message}; mend what it names, such as a right that is missing, and call migrate again"
    )]
    Migration {
        /// The migration's name.
        name: String,
        /// What the database said.
        message: String,
    },
    /// Any other error of the database.
    #[error(transparent)]
    Database(#[from] Error),
}

/// Makes Gatun's tables, or brings them up to date, and gives the number of migrations that it ran. Any number of
/// processes may call it at once: one does it, the others wait. It keeps its books in `job_schema_versions` and
/// leaves the app's own Diesel migrations alone.
///
/// # Errors
/// See [`MigrateError`].
pub fn migrate<C>(conn: &mut C) -> Result<usize, MigrateError>
where
    C: DbConnection + 'static,
{
    if transaction_depth(conn) > 0 {
        return Err(MigrateError::InTransaction);
    }
    C::Db::check_server(conn)?;
    C::Db::migrate_alone(conn, |conn| {
        let current = current_version(conn)?;
        let migrations = numbered_migrations::<C::Db>()?;
        let newest = migrations.last().map_or(0, |(version, _)| *version);
        if current > newest {
            return Err(MigrateError::NewerSchema {
                database: current,
                binary: newest,
            });
        }
        let mut ran = 0;
        for (version, migration) in &migrations {
            if *version > current {
                migration.run(conn).map_err(|error| MigrateError::Migration {
                    name: migration.name().to_string(),
                    message: error.to_string(),
                })?;
                ran += 1;
            }
        }
        if ran > 0 {
            log::info!("gatun: ran {ran} migrations, the tables are at version {newest}");
        }
        Ok(ran)
    })
}

/// The version of Gatun's tables in this database, and the newest that this program knows; `None` where there are no
/// tables of ours. A worker checks it at start.
///
/// # Errors
/// [`MigrateError::ForeignTable`], or an error of the database.
pub fn schema_version<C: DbConnection>(conn: &mut C) -> Result<(Option<i64>, i64), MigrateError> {
    let newest = numbered_migrations::<C::Db>()?
        .last()
        .map_or(0, |(version, _)| *version);
    let current = current_version(conn)?;
    Ok(((current > 0).then_some(current), newest))
}

/// Migrations with their versions, in order.
type Numbered<DB> = Vec<(i64, Box<dyn Migration<DB>>)>;

fn numbered_migrations<DB: Database>() -> Result<Numbered<DB>, MigrateError> {
    let mut migrations = DB::migrations()?
        .into_iter()
        .map(|migration| {
            let version = migration.name().version().to_string();
            let number = version.parse().map_err(|_| MigrateError::Migration {
                name: migration.name().to_string(),
                message: format!("`{version}` is no number"),
            })?;
            Ok((number, migration))
        })
        .collect::<Result<Vec<_>, MigrateError>>()?;
    migrations.sort_by_key(|(version, _)| *version);
    Ok(migrations)
}

/// 0 where there is none of our tables; an error where there is a table of one of our names that is not ours.
fn current_version<C: DbConnection>(conn: &mut C) -> Result<i64, MigrateError> {
    let columns = C::Db::columns(conn, VERSIONS)?;
    if columns.is_empty() {
        let mut names = TABLES.to_vec();
        names.push(VIEW);
        return match C::Db::existing_tables(conn, &names)?.into_iter().next() {
            Some(foreign) => Err(MigrateError::ForeignTable(foreign)),
            None => Ok(0),
        };
    }
    if columns != VERSIONS_COLUMNS {
        return Err(MigrateError::ForeignTable(VERSIONS.to_owned()));
    }
    C::Db::max_version(conn)
}

/// Gives the error of an embedded migration that cannot be read our own type.
pub(crate) fn embedded<T>(migrations: diesel::migration::Result<T>) -> Result<T, MigrateError> {
    migrations.map_err(|error| MigrateError::Migration {
        name: "embedded".into(),
        message: error.to_string(),
    })
}
