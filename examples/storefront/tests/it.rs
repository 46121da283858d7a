//! The shop as its customers meet it: over HTTP, with its three processes, once for each database that is enabled.
#![allow(clippy::duplicate_mod)] // One suite, compiled once for each database.

mod shared;

#[cfg(feature = "postgres")]
#[path = "."]
mod postgres {
    use job_test::postgres::Db;
    const WEB: &str = "web";
    #[path = "suite/mod.rs"]
    mod suite;
}

#[cfg(feature = "mysql")]
#[path = "."]
mod mysql {
    use job_test::mysql::Db;
    const WEB: &str = "web";
    #[path = "suite/mod.rs"]
    mod suite;
}

#[cfg(feature = "sqlite")]
#[path = "."]
mod sqlite {
    use job_test::sqlite::Db;
    const WEB: &str = "web";
    #[path = "suite/mod.rs"]
    mod suite;
}

/// On PostgreSQL through diesel_async.
#[cfg(feature = "diesel_async")]
#[path = "."]
mod diesel_async {
    use job_test::postgres::Db;
    const WEB: &str = "async-web";
    #[path = "suite/mod.rs"]
    mod suite;
}
