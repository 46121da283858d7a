use super::{Kind, first_column, server_url};
use diesel::connection::SimpleConnection;
use diesel::{Connection, PgConnection, QueryResult};

/// PostgreSQL: each test has a schema of its own on the server of `POSTGRES_DATABASE_URL`.
#[derive(Debug)]
pub struct Postgres;

impl Kind for Postgres {
    const NAME: &'static str = "postgres";
    type Conn = PgConnection;

    fn server() -> String {
        server_url("POSTGRES_DATABASE_URL")
    }

    fn create(server: &str, name: &str) -> String {
        admin(server)
            .unwrap_or_else(|error| panic!("{error}"))
            .batch_execute(&format!("CREATE SCHEMA {name}"))
            .expect("a new schema");
        let separator = if server.contains('?') { '&' } else { '?' };
        format!("{server}{separator}options=-csearch_path%3D{name}")
    }

    fn remove(server: &str, name: &str) -> Result<(), String> {
        // A transaction that a failed test left open must not hang the whole run.
        admin(server)?
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

fn admin(server: &str) -> Result<PgConnection, String> {
    PgConnection::establish(server).map_err(|error| format!("no connection to {server}: {error}"))
}
