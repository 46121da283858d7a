//! What the tests of this workspace share: [`TestDb`], a database of its own for each test; [`eventually`], which waits
//! for another process; [`crew`], processes that are killed, suspended or cut off; and [`server`], private servers for
//! tests that kill one.
//!
//! # How a suite is written
//!
//! The tests of a crate stand in `tests/suite/`, as plain `#[test]` functions that name no database, and
//! `tests/it.rs` compiles them once for each database whose feature is enabled:
//!
//! ```text
//! //! The suite, once for each database that is enabled.
//! #![allow(clippy::duplicate_mod)] // One suite, compiled once for each database.
//!
//! #[cfg(feature = "postgres")]
//! #[path = "."]
//! mod postgres {
//!     use job_test::postgres::{Conn, Db};
//!     #[path = "suite/mod.rs"]
//!     mod suite;
//! }
//! // The same for `mysql` and `sqlite`.
//! ```
//!
//! `tests/suite/mod.rs` starts with `use super::{Conn, Db};` and lists its modules, each of which starts with
//! `use super::{Conn, Db};` too. (The modules are written out, not made by a macro, since rustfmt does not find
//! files through a macro.) A test's name then tells its database: `postgres::suite::enqueue::…`.
//!
//! The crate takes `job_test` as a dev-dependency, and hands its features on:
//!
//! ```toml
//! [features]
//! postgres = ["job_db/postgres", "job_test/postgres"]
//!
//! [dev-dependencies]
//! job_test.workspace = true
//! ```
//!
//! # The databases
//!
//! `bin/test` starts private servers and sets `POSTGRES_DATABASE_URL` and `MYSQL_DATABASE_URL`; for `cargo test` by hand,
//! `eval "$(bin/databases start)"` does it. A test whose database cannot be reached fails; it is never skipped.

#[cfg(feature = "diesel_async")]
pub mod asynchronous;
pub mod crew;
mod db;
mod invariants;
mod kind;
pub mod server;
mod wait;

pub use db::TestDb;
pub use kind::Kind;
#[cfg(feature = "mysql")]
pub use kind::mysql::Mysql;
#[cfg(feature = "postgres")]
pub use kind::postgres::Postgres;
#[cfg(feature = "sqlite")]
pub use kind::sqlite::Sqlite;
pub use wait::eventually;

/// What a suite on PostgreSQL takes from its parent module.
#[cfg(feature = "postgres")]
pub mod postgres {
    /// A database for one test.
    pub type Db = crate::TestDb<crate::Postgres>;
    /// The connection to it.
    pub type Conn = diesel::PgConnection;
}

/// What a suite on MySQL or MariaDB takes from its parent module.
#[cfg(feature = "mysql")]
pub mod mysql {
    /// A database for one test.
    pub type Db = crate::TestDb<crate::Mysql>;
    /// The connection to it.
    pub type Conn = diesel::MysqlConnection;
}

/// What a suite on SQLite takes from its parent module.
#[cfg(feature = "sqlite")]
pub mod sqlite {
    /// A database for one test.
    pub type Db = crate::TestDb<crate::Sqlite>;
    /// The connection to it.
    pub type Conn = diesel::SqliteConnection;
}
