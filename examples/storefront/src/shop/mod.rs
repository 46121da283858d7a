//! The shop as on any one database: everything here is written for `Conn`, the app's Diesel connection.

pub(super) mod authorize_card;
pub(super) mod order;
mod pooled;
pub(super) mod web;

use super::{Conn, MIGRATIONS};
use crate::gateway::Gateway;
use crate::{ShopCommand, WorkerOptions};
use anyhow::{Context as _, anyhow, bail};
use authorize_card::AuthorizeCard;
use diesel::Connection as _;
use diesel::r2d2::{self, ConnectionManager, CustomizeConnection};
use diesel_migrations::MigrationHarness as _;
use job_worker::Worker;
use std::time::Duration;

type Pool = r2d2::Pool<ConnectionManager<Conn>>;

pub(crate) fn run(command: ShopCommand, url: &str) -> anyhow::Result<()> {
    match command {
        ShopCommand::Migrate => migrate(url),
        ShopCommand::Web { listen } => {
            migrate(url)?;
            crate::http::serve("the shop", listen, web::router(pool(url)?))
        }
        ShopCommand::Worker(options) => work(url, options),
    }
}

/// Makes the app's tables and Gatun's. Gatun's may be made by any number of processes at once; Diesel's own
/// migrations may not, so that of the three processes only the web does it.
pub(super) fn migrate(url: &str) -> anyhow::Result<()> {
    let mut conn = connect(url)?;
    conn.run_pending_migrations(MIGRATIONS)
        .map_err(|error| anyhow!(error))?;
    job_core::migrate(&mut conn)?;
    Ok(())
}

/// Performs jobs until SIGTERM or SIGINT. It needs Gatun's tables at once, and the app's when there is a first job.
fn work(url: &str, options: WorkerOptions) -> anyhow::Result<()> {
    job_core::migrate(&mut connect(url)?)?;
    let gateway = Gateway::new(
        options.payment_url,
        Duration::from_millis(options.payment_timeout_ms),
    );
    let rescue_after = Duration::from_millis(options.rescue_after_ms);
    Worker::new(ConnectionManager::<Conn>::new(url), gateway)
        .register::<AuthorizeCard>()
        .queues(["payments"])
        .threads(options.threads)
        .heartbeat(rescue_after / 5)
        .rescue_after(rescue_after)
        .run()?;
    Ok(())
}

fn connect(url: &str) -> anyhow::Result<Conn> {
    let mut conn = match Conn::establish(url) {
        Ok(conn) => conn,
        // A client library that takes a part of the password for the host or the port shows it in its error.
        Err(_) if crate::has_raw_password(url) => bail!(
            "cannot connect to the database of DATABASE_URL: write / ? # and @ in user and password as %2F %3F %23 and %40"
        ),
        Err(error) => return Err(error).context("cannot connect to the database of DATABASE_URL"),
    };
    job_core::prepare_connection(&mut conn)?;
    Ok(conn)
}

fn pool(url: &str) -> anyhow::Result<Pool> {
    let pool = r2d2::Pool::builder()
        .max_size(8)
        .connection_timeout(Duration::from_secs(5))
        .connection_customizer(Box::new(SetUp))
        .build(ConnectionManager::new(url))?;
    Ok(pool)
}

#[derive(Debug)]
struct SetUp;

impl CustomizeConnection<Conn, r2d2::Error> for SetUp {
    fn on_acquire(&self, conn: &mut Conn) -> Result<(), r2d2::Error> {
        job_core::prepare_connection(conn).map_err(r2d2::Error::QueryError)
    }
}
