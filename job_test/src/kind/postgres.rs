use super::{Kind, first_column, server_url};
use diesel::connection::SimpleConnection;
use diesel::{Connection, PgConnection, QueryResult};

/// PostgreSQL: each test has a schema of its own on the server of `POSTGRES_DATABASE_URL`.
#[derive(Debug)]
pub struct Postgres;

fn base_url() -> String {
    server_url("POSTGRES_DATABASE_URL")
}

fn admin() -> PgConnection {
    let url = base_url();
    PgConnection::establish(&url).unwrap_or_else(|error| panic!("no connection to {url}: {error}"))
}

impl Kind for Postgres {
    const NAME: &'static str = "postgres";
    type Conn = PgConnection;

    fn create(name: &str) -> String {
        admin()
            .batch_execute(&format!("CREATE SCHEMA {name}"))
            .expect("a new schema");
        let base = base_url();
        let separator = if base.contains('?') { '&' } else { '?' };
        format!("{base}{separator}options=-csearch_path%3D{name}")
    }

    fn remove(name: &str) -> Result<(), String> {
        // A transaction that a failed test left open must not hang the whole run.
        PgConnection::establish(&base_url())
            .map_err(|error| error.to_string())?
            .batch_execute(&format!(
                "SET lock_timeout = '10s'; SET client_min_messages = warning; DROP SCHEMA IF EXISTS {name} CASCADE"
            ))
            .map_err(|error| error.to_string())
    }

    fn set_up(_: &mut PgConnection) -> QueryResult<()> {
        Ok(())
    }

    first_column!();
}
