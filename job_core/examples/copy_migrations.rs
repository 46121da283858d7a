//! Copies Gatun's migrations into an app's own folder, for teams that review the SQL that their database gets:
//!
//! ```text
//! cargo run -p job_core --example copy_migrations --features postgres -- postgres path/to/app/migrations
//! ```
//!
//! An app does the same with a file of this kind of its own: it then copies the migrations of the very version
//! that it uses.

use anyhow::{Context, bail};
use std::path::PathBuf;

fn main() -> anyhow::Result<()> {
    let mut args = std::env::args().skip(1);
    let usage = "say the database and the folder: copy_migrations postgres|mysql|sqlite path/to/migrations";
    let (database, folder) = (args.next().context(usage)?, args.next().context(usage)?);

    let made = copy(&database, &folder)?;
    if made.is_empty() {
        println!("{folder} has all of Gatun's migrations already; nothing was changed");
        return Ok(());
    }
    for path in &made {
        println!("copied {}", path.display());
    }
    println!(
        "Next: read them, commit them, and run `diesel migration run` as for your own.\n\
         After an update of Gatun copy again: only what is new is added."
    );
    Ok(())
}

fn copy(database: &str, folder: &str) -> anyhow::Result<Vec<PathBuf>> {
    match database {
        #[cfg(feature = "postgres")]
        "postgres" => Ok(job_core::copy_migrations::<diesel::pg::Pg>(folder)?),
        #[cfg(feature = "mysql")]
        "mysql" => Ok(job_core::copy_migrations::<diesel::mysql::Mysql>(folder)?),
        #[cfg(feature = "sqlite")]
        "sqlite" => Ok(job_core::copy_migrations::<diesel::sqlite::Sqlite>(folder)?),
        _ => {
            bail!("cannot copy the migrations of {database} into {folder}: build with --features {database}")
        }
    }
}
