//! What Gatun's crates need from a database: [`Database`], the seam on Diesel's backend types; the SQL types
//! [`Instant`] and [`JsonDoc`] that give one schema for all three databases; the database's clock; [`statement!`],
//! which makes a prepared statement of a piece of SQL; and [`migrate`].
//!
//! Apps do not use this crate directly: `job_core` and `job_lock` export what is meant for them.

// Without a database there is nothing to use it with. What the compiler says of the app comes first then.
#![cfg_attr(
    not(any(feature = "postgres", feature = "mysql", feature = "sqlite")),
    allow(unused)
)]

mod clock;
mod connection;
#[macro_use]
mod copy;
mod database;
mod depth;
mod hash;
mod host;
mod migrations;
mod prepare;
mod secrets;
mod statement;
mod types;

#[cfg(feature = "mysql")]
mod mysql;
#[cfg(feature = "postgres")]
mod postgres;
#[cfg(feature = "sqlite")]
mod sqlite;

pub use clock::now;
pub use connection::DbConnection;
pub use copy::{CopyError, MigrationFile, copy_migrations};
pub use database::{Database, Fault};
pub use depth::{is_broken, mark_if_over, roll_back_to, savepoint, transaction_depth};
pub use hash::fnv1a;
pub use host::host_name;
pub use migrations::{MigrateError, TABLES, migrate, schema_version};
pub use prepare::prepare_connection;
pub use secrets::without_secrets;
pub use types::{Instant, JsonDoc, JsonText};

#[doc(hidden)]
pub use diesel;
