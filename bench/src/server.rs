//! The PostgreSQL of a run, with a fresh database for each measurement.

use crate::proc;
use anyhow::{Context, Result};
use diesel::connection::SimpleConnection;
use diesel::dsl::sql;
use diesel::prelude::*;
use diesel::sql_types::{Double, Text};
use job_test::server::PostgresServer;

/// A private server.
#[derive(Debug)]
pub struct Server {
    inner: PostgresServer,
    root: u32,
}

/// A database that goes when it is dropped.
#[derive(Debug)]
pub struct Place {
    server: String,
    name: String,
    pub url: String,
}

impl Server {
    /// Starts a server with the settings that `initdb` gives it.
    pub fn start() -> Result<Self> {
        Self::from(PostgresServer::start())
    }

    /// Starts one that counts statements.
    pub fn start_counting() -> Result<Self> {
        let inner = PostgresServer::start();
        PgConnection::establish(&inner.url())?
            .batch_execute("ALTER SYSTEM SET shared_preload_libraries = 'pg_stat_statements'")?;
        inner.stop_immediate();
        inner.start_again();
        PgConnection::establish(&inner.url())?.batch_execute("CREATE EXTENSION pg_stat_statements")?;
        Self::from(inner)
    }

    fn from(inner: PostgresServer) -> Result<Self> {
        let mut conn = PgConnection::establish(&inner.url())?;
        let pid = number(&mut conn, "SELECT pg_backend_pid()::float8")?;
        Ok(Server {
            root: proc::parent(pid as u32)?,
            inner,
        })
    }

    pub fn connect(&self) -> Result<PgConnection> {
        Ok(PgConnection::establish(&self.inner.url())?)
    }

    /// A new, empty database.
    pub fn place(&self) -> Result<Place> {
        let name = format!("bench_{:08x}", fastrand::u32(..));
        self.connect()?
            .batch_execute(&format!("CREATE DATABASE {name}"))?;
        let server = self.inner.url();
        let (address, _) = server.rsplit_once('/').context("a URL")?;
        Ok(Place {
            url: format!("{address}/{name}"),
            name,
            server,
        })
    }

    /// CPU time of all its processes until now, in microseconds.
    pub fn cpu(&self) -> Result<f64> {
        proc::server_cpu(self.root)
    }

    /// Bytes of write-ahead log until now.
    pub fn wal(&self) -> Result<f64> {
        number(
            &mut self.connect()?,
            "SELECT pg_wal_lsn_diff(pg_current_wal_insert_lsn(), '0/0')::float8",
        )
    }

    pub fn checkpoint(&self) -> Result<()> {
        Ok(self.connect()?.batch_execute("CHECKPOINT")?)
    }

    pub fn version(&self) -> Result<String> {
        text(&mut self.connect()?, "SELECT current_setting('server_version')")
    }
}

impl Place {
    pub fn connect(&self) -> Result<PgConnection> {
        Ok(PgConnection::establish(&self.url)?)
    }

    /// The one number that a query gives.
    pub fn number(&self, query: &str) -> Result<f64> {
        number(&mut self.connect()?, query)
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let dropped = PgConnection::establish(&self.server)
            .map_err(anyhow::Error::from)
            .and_then(|mut conn| {
                Ok(conn.batch_execute(&format!("DROP DATABASE {} WITH (FORCE)", self.name))?)
            });
        if let Err(error) = dropped {
            eprintln!("{} stays behind: {error}", self.name);
        }
    }
}

/// The one number that a query gives, cast to `float8` by the query.
pub fn number(conn: &mut PgConnection, query: &str) -> Result<f64> {
    let row: Number = diesel::sql_query(format!("SELECT ({query})::float8 AS number")).get_result(conn)?;
    Ok(row.number)
}

#[derive(QueryableByName)]
struct Number {
    #[diesel(sql_type = Double)]
    number: f64,
}

/// The one text that a query gives.
pub fn text(conn: &mut PgConnection, query: &str) -> Result<String> {
    Ok(diesel::select(sql::<Text>(&format!("({query})"))).get_result(conn)?)
}
