//! A shop whose slow part, the payment, is a job. See README.md.
//!
//! ```text
//! cargo run -p storefront                      the shop, its worker and the payment service; Ctrl-C ends all three
//! cargo run -p storefront -- web               one of them: web, worker, payment-service
//! ```
#![allow(clippy::duplicate_mod)] // The shop, compiled once for each database.

mod assets;
mod everything;
mod form;
mod gateway;
mod http;
mod pages;
mod payment_service;
mod progress;
mod random;

use anyhow::bail;
use clap::{Parser, Subcommand};
use std::net::SocketAddr;

/// The shop on PostgreSQL.
#[cfg(feature = "postgres")]
#[path = "."]
mod postgres {
    type Conn = diesel::PgConnection;
    const MIGRATIONS: diesel_migrations::EmbeddedMigrations =
        diesel_migrations::embed_migrations!("migrations/postgres");

    #[cfg(feature = "diesel_async")]
    #[path = "shop/asynchronous.rs"]
    pub(crate) mod asynchronous;
    #[path = "shop/mod.rs"]
    pub(crate) mod shop;
}

/// The shop on MySQL or MariaDB.
#[cfg(feature = "mysql")]
#[path = "."]
mod mysql {
    type Conn = diesel::MysqlConnection;
    const MIGRATIONS: diesel_migrations::EmbeddedMigrations =
        diesel_migrations::embed_migrations!("migrations/mysql");

    #[path = "shop/mod.rs"]
    pub(crate) mod shop;
}

/// The shop on SQLite.
#[cfg(feature = "sqlite")]
#[path = "."]
mod sqlite {
    type Conn = diesel::SqliteConnection;
    const MIGRATIONS: diesel_migrations::EmbeddedMigrations =
        diesel_migrations::embed_migrations!("migrations/sqlite");

    #[path = "shop/mod.rs"]
    pub(crate) mod shop;
}

/// A shop whose payments are jobs. Without a command it starts all three processes.
#[derive(Debug, Parser)]
#[command(
    after_help = "DATABASE_URL says where the orders are: postgres://…, mysql://… or a SQLite file, \
                        storefront.sqlite3 if it is not set."
)]
struct Cli {
    #[command(subcommand)]
    command: Option<Command>,
}

#[derive(Debug, Subcommand)]
enum Command {
    #[command(flatten)]
    Shop(ShopCommand),
    /// Serves the shop from PostgreSQL with diesel_async
    #[cfg(feature = "diesel_async")]
    AsyncWeb {
        /// Address and port; port 0 means a free one
        #[arg(long, default_value_t = everything::WEB_ADDRESS)]
        listen: SocketAddr,
    },
    /// Plays the external service that charges cards: slow, and not to be relied on
    PaymentService(payment_service::Options),
}

/// What needs the database.
#[derive(Debug, Subcommand)]
enum ShopCommand {
    /// Makes the tables, and ends
    Migrate,
    /// Makes the tables and serves the shop
    Web {
        /// Address and port; port 0 means a free one
        #[arg(long, default_value_t = everything::WEB_ADDRESS)]
        listen: SocketAddr,
    },
    /// Performs the jobs
    Worker(WorkerOptions),
}

#[derive(Debug, clap::Args)]
struct WorkerOptions {
    /// Where the payment service is
    #[arg(long, default_value = "http://127.0.0.1:4000")]
    payment_url: String,
    /// How long to wait for its answer
    #[arg(long, default_value_t = 2000)]
    payment_timeout_ms: u64,
    /// How many jobs are performed at a time
    #[arg(long, default_value_t = 4)]
    threads: usize,
    /// After how long a silence of a worker the others take its jobs
    #[arg(long, default_value_t = 10_000)]
    rescue_after_ms: u64,
}

fn main() -> anyhow::Result<()> {
    env_logger::Builder::from_env(env_logger::Env::default().default_filter_or("info")).init();
    match Cli::parse().command {
        None => everything::start(),
        #[cfg(feature = "diesel_async")]
        Some(Command::AsyncWeb { listen }) => postgres::asynchronous::serve(listen, &database_url()),
        Some(Command::PaymentService(options)) => payment_service::serve(options),
        Some(Command::Shop(command)) => run_shop(command),
    }
}

fn database_url() -> String {
    std::env::var("DATABASE_URL").unwrap_or_else(|_| "storefront.sqlite3".into())
}

/// Chooses the copy of the shop that is compiled for the database.
fn run_shop(command: ShopCommand) -> anyhow::Result<()> {
    let url = database_url();
    let scheme = url.split_once("://").map_or("sqlite", |(scheme, _)| scheme);
    match scheme {
        #[cfg(feature = "postgres")]
        "postgres" | "postgresql" => postgres::shop::run(command, &url),
        #[cfg(feature = "mysql")]
        "mysql" => mysql::shop::run(command, &url),
        #[cfg(feature = "sqlite")]
        "sqlite" => sqlite::shop::run(command, &url),
        // Not the URL: it may hold a password.
        _ => bail!(
            "this program is not built for the database of DATABASE_URL ({scheme}): build it with \
             --features postgres, mysql or sqlite"
        ),
    }
}

/// Whether user and password hold characters that must not stand there as they are.
fn has_raw_password(url: &str) -> bool {
    url.split_once("://")
        .and_then(|(_, rest)| rest.rsplit_once('@'))
        .is_some_and(|(user, _)| user.contains(['/', '?', '#', '@']))
}

#[cfg(test)]
mod tests {
    use super::has_raw_password;

    #[test]
    fn a_password_that_would_show_in_an_error_is_found() {
        assert!(has_raw_password("postgres://u:a/b@host/db"));
        assert!(has_raw_password("mysql://u:a@b@host/db"));
        assert!(!has_raw_password("postgres://u:a%2Fb@host/db?options=x"));
        assert!(!has_raw_password("postgres://host/db"));
        assert!(!has_raw_password("storefront.sqlite3"));
    }
}
