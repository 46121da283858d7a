//! Fills a column of a table of 1,000,000 rows by worker processes, some of which are killed while others are started; one row
//! is poison. At the end it proves that each row was done exactly once.
//!
//! ```text
//! cargo run --release -p backfill                  1,000,000 rows, 3 workers
//! cargo run --release -p backfill -- 20000 5       so many rows, so many workers
//! ```
//!
//! `DATABASE_URL` says where: `postgres://…`, `mysql://…` (with `--features postgres` or `mysql`) or a SQLite file, which is
//! `backfill.sqlite3` if nothing is said. The table is called `backfill_accounts`; an old one of that name is dropped.
#![allow(clippy::duplicate_mod)] // The program, compiled once for each database.

use anyhow::{Result, anyhow, bail};

/// The program on PostgreSQL.
#[cfg(feature = "postgres")]
#[path = "."]
mod postgres {
    type Conn = diesel::PgConnection;
    const SET_UP: &str = "";

    #[path = "backfill.rs"]
    pub(crate) mod backfill;
    mod table;
}

/// The program on MySQL or MariaDB.
#[cfg(feature = "mysql")]
#[path = "."]
mod mysql {
    type Conn = diesel::MysqlConnection;
    const SET_UP: &str = "";

    #[path = "backfill.rs"]
    pub(crate) mod backfill;
    mod table;
}

/// The program on SQLite.
#[cfg(feature = "sqlite")]
#[path = "."]
mod sqlite {
    type Conn = diesel::SqliteConnection;
    // Who reads does not wait for who writes.
    const SET_UP: &str = "PRAGMA busy_timeout = 10000; PRAGMA journal_mode = WAL";

    #[path = "backfill.rs"]
    pub(crate) mod backfill;
    mod table;
}

mod crew;

/// More would be a mistake.
const MOST_ROWS: i64 = 1_000_000_000;
const MOST_WORKERS: i64 = 1_000;

/// What to do, from the command line.
enum Command {
    Everything {
        rows: i64,
        workers: usize,
    },
    /// One of the worker processes.
    Worker,
}

fn main() -> Result<()> {
    env_logger::Builder::from_env(env_logger::Env::default().default_filter_or("error")).init();
    let args: Vec<String> = std::env::args_os()
        .skip(1)
        .map(|arg| arg.to_string_lossy().into_owned())
        .collect();
    let command = command(&args)?;
    let url = std::env::var("DATABASE_URL").unwrap_or_else(|_| "backfill.sqlite3".into());
    match url.split_once("://").map_or("sqlite", |(scheme, _)| scheme) {
        #[cfg(feature = "postgres")]
        "postgres" | "postgresql" => postgres::backfill::run(&command, &url),
        #[cfg(feature = "mysql")]
        "mysql" => mysql::backfill::run(&command, &url),
        #[cfg(feature = "sqlite")]
        "sqlite" => sqlite::backfill::run(&command, &url),
        // Not the URL: it may hold a password.
        scheme => bail!(
            "this program is not built for the database of DATABASE_URL ({scheme}): build it with --features postgres, mysql \
             or sqlite"
        ),
    }
}

/// # Errors
/// What is accepted instead.
fn command(args: &[String]) -> Result<Command> {
    if args == ["worker"] {
        return Ok(Command::Worker);
    }
    if let Some(more) = args.get(2) {
        bail!("{more:?} is one argument too many: say how many rows and how many workers, or nothing");
    }
    let number = |at: usize, what, default, most| match args.get(at) {
        None => Ok(default),
        Some(text) => match text.parse() {
            Ok(number) if (1..=most).contains(&number) => Ok(number),
            _ => Err(anyhow!(
                "the number of {what} is a whole number from 1 to {most}, not {text:?}"
            )),
        },
    };
    Ok(Command::Everything {
        rows: number(0, "rows", 1_000_000, MOST_ROWS)?,
        workers: usize::try_from(number(1, "workers", 3, MOST_WORKERS)?)?,
    })
}

/// Whether user and password hold characters that must not stand there as they are.
fn has_raw_password(url: &str) -> bool {
    url.split_once("://")
        .and_then(|(_, rest)| rest.rsplit_once('@'))
        .is_some_and(|(user, _)| user.contains(['/', '?', '#', '@']))
}
