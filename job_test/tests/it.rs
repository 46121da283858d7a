//! That the tools of the tests do what the tests trust them to do.
#![allow(clippy::duplicate_mod)] // One suite, compiled once for each database.

#[cfg(feature = "postgres")]
#[path = "."]
mod postgres {
    use job_test::postgres::Db;
    #[path = "only/postgres.rs"]
    mod only;
    #[path = "suite/mod.rs"]
    mod suite;
}

#[cfg(feature = "mysql")]
#[path = "."]
mod mysql {
    use job_test::mysql::Db;
    #[path = "only/mysql.rs"]
    mod only;
    #[path = "suite/mod.rs"]
    mod suite;
}

#[cfg(feature = "sqlite")]
#[path = "."]
mod sqlite {
    use job_test::sqlite::Db;
    #[path = "suite/mod.rs"]
    mod suite;
}
