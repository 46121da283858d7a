//! The suite, once for each database that is enabled, and what only one of them, or a network, can show.
#![allow(clippy::duplicate_mod)] // One suite, compiled once for each database.

#[path = "only/source.rs"]
mod source;
#[cfg(any(feature = "postgres", feature = "mysql", feature = "sqlite"))]
mod tools;

#[cfg(feature = "postgres")]
#[path = "."]
mod postgres {
    use job_test::postgres::{Conn, Db};

    /// What the last client packet of a claim, and of a completion, holds: each is one statement.
    const COMMIT: &str = "";

    #[cfg(feature = "tokio")]
    #[path = "only/async_crowd.rs"]
    mod async_crowd;
    #[path = "only/ghosts.rs"]
    mod ghosts;
    #[path = "only/network.rs"]
    mod network;
    #[path = "only/postgres.rs"]
    mod only;
    #[path = "only/pooler.rs"]
    mod pooler;
    #[path = "suite/mod.rs"]
    mod suite;
}

#[cfg(feature = "mysql")]
#[path = "."]
mod mysql {
    use job_test::mysql::{Conn, Db};

    /// What the last client packet of a claim, and of a completion, holds.
    const COMMIT: &str = "COMMIT";

    #[path = "only/ghosts.rs"]
    mod ghosts;
    #[path = "only/network.rs"]
    mod network;
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
