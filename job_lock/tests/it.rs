//! The suite, once for each database that is enabled; and what only one database can do, in `on/`.
#![allow(clippy::duplicate_mod)] // One suite, compiled once for each database.

mod once;

#[cfg(feature = "postgres")]
#[path = "."]
mod postgres {
    use job_test::postgres::{Conn, Db};
    #[path = "on/postgres.rs"]
    mod on;
    #[path = "suite/mod.rs"]
    mod suite;
}

#[cfg(feature = "mysql")]
#[path = "."]
mod mysql {
    use job_test::mysql::{Conn, Db};
    #[path = "on/mysql.rs"]
    mod on;
    #[path = "suite/mod.rs"]
    mod suite;
}

#[cfg(feature = "sqlite")]
#[path = "."]
mod sqlite {
    use job_test::sqlite::{Conn, Db};
    #[path = "on/sqlite.rs"]
    mod on;
    #[path = "suite/mod.rs"]
    mod suite;
}
