//! The suite, once for each database that is enabled, and what only one of them, or a network, can show.
#![allow(clippy::duplicate_mod)] // One suite, compiled once for each database.

mod source;

#[cfg(feature = "postgres")]
#[path = "."]
mod postgres {
    use job_test::postgres::{Conn, Db};
    #[path = "suite/mod.rs"]
    mod suite;
}

#[cfg(feature = "mysql")]
#[path = "."]
mod mysql {
    use job_test::mysql::{Conn, Db};
    #[path = "suite/mod.rs"]
    mod suite;
}

#[cfg(feature = "sqlite")]
#[path = "."]
mod sqlite {
    use job_test::sqlite::{Conn, Db};
    #[path = "suite/mod.rs"]
    mod suite;
}
