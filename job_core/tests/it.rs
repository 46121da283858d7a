//! The conformance suite, once for each database that is enabled, and what only one of them can show.
#![allow(clippy::duplicate_mod)] // One suite, compiled once for each database.

#[path = "only/source.rs"]
mod source; // what the source of this crate must not hold

#[cfg(feature = "postgres")]
#[path = "."]
mod postgres {
    use job_test::postgres::{Conn, Db};
    #[path = "only/postgres.rs"]
    mod only;
    #[path = "suite/mod.rs"]
    mod suite;
}

#[cfg(feature = "mysql")]
#[path = "."]
mod mysql {
    use job_test::mysql::{Conn, Db};
    #[path = "only/mysql.rs"]
    mod only;
    #[path = "suite/mod.rs"]
    mod suite;
}

#[cfg(feature = "sqlite")]
#[path = "."]
mod sqlite {
    use job_test::sqlite::{Conn, Db};
    #[path = "only/sqlite.rs"]
    mod only;
    #[path = "suite/mod.rs"]
    mod suite;
}
