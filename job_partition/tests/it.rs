//! Partitions, once on each database that is enabled, and what only a server can show.
#![allow(clippy::duplicate_mod)] // One suite, compiled once for each database.

#[cfg(feature = "postgres")]
#[path = "."]
mod postgres {
    use job_partition::Key;
    use job_test::postgres::{Conn, Db};
    use std::time::Duration;
    #[path = "only/isolation.rs"]
    mod isolation;
    #[path = "only/postgres.rs"]
    mod only;
    #[path = "only/proxy.rs"]
    mod proxy;
    #[path = "only/server.rs"]
    mod server;
    #[path = "suite/mod.rs"]
    mod suite;
    #[path = "only/views.rs"]
    mod views;

    const UUID: &str = "uuid";
    const KILL: Option<&str> = Some("SELECT pg_terminate_backend(ID)");
    const IMPLICIT_COMMIT: Option<&str> = None;
    const SWALLOWED_ROLLBACK: Option<(&str, &str)> = None;
    const LEVEL: &str = "SET SESSION CHARACTERISTICS AS TRANSACTION ISOLATION LEVEL $LEVEL";
    const MANY: u16 = 3_000;
    const PLACEHOLDER: &str = "$1";
    const REFUSE_AT_COMMIT: Option<&str> = Some(
        "CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
           IF NEW.id = -77 THEN RAISE EXCEPTION 'never' USING ERRCODE = '40001'; END IF; RETURN NEW; END $$;
         CREATE CONSTRAINT TRIGGER refuse AFTER UPDATE ON items DEFERRABLE INITIALLY DEFERRED
           FOR EACH ROW EXECUTE FUNCTION refuse()",
    );
    /// How a session is given little patience, how a table is locked, and how many wait to do so; where a second is not the least.
    const LOCKED_TABLE: Option<(&str, &str, &str)> = Some((
        "SET lock_timeout = 1",
        "LOCK TABLE items IN EXCLUSIVE MODE",
        "SELECT count(*) FROM pg_locks WHERE mode = 'ExclusiveLock' AND relation = 'items'::regclass AND NOT granted",
    ));
    const SHORT_IDLE: Option<(&str, Duration)> = Some((
        "SET LOCAL idle_in_transaction_session_timeout = 50",
        Duration::from_millis(250),
    ));
    const SESSION: &str = "SELECT CAST(pg_backend_pid() AS bigint) AS number";

    /// The key as an SQL literal.
    fn literal(_: Key) -> &'static str {
        "quote_literal(CAST(id AS text))"
    }

    fn uuid(number: u128) -> String {
        format!("'{number:032x}'")
    }
}

#[cfg(feature = "mysql")]
#[path = "."]
mod mysql {
    use job_partition::Key;
    use job_test::mysql::{Conn, Db};
    use std::time::Duration;
    #[path = "only/isolation.rs"]
    mod isolation;
    #[path = "only/mysql.rs"]
    mod only;
    #[path = "only/server.rs"]
    mod server;
    #[path = "suite/mod.rs"]
    mod suite;
    #[path = "only/views.rs"]
    mod views;

    const UUID: &str = "BINARY(16)";
    const KILL: Option<&str> = Some("KILL ID");
    const IMPLICIT_COMMIT: Option<&str> = Some("CREATE TABLE IF NOT EXISTS by_the_way (id INT)");
    const SWALLOWED_ROLLBACK: Option<(&str, &str)> = None;
    const LEVEL: &str = "SET SESSION TRANSACTION ISOLATION LEVEL $LEVEL";
    const MANY: u16 = 3_000;
    const PLACEHOLDER: &str = "?";
    const REFUSE_AT_COMMIT: Option<&str> = None;
    const LOCKED_TABLE: Option<(&str, &str, &str)> = None;
    const SHORT_IDLE: Option<(&str, Duration)> =
        Some(("SET SESSION wait_timeout = 1", Duration::from_millis(1500)));
    const SESSION: &str = "SELECT CAST(CONNECTION_ID() AS signed) AS number";

    fn literal(kind: Key) -> &'static str {
        match kind {
            Key::Integer => "CAST(id AS char)",
            Key::Uuid => "CONCAT('x''', HEX(id), '''')",
            Key::Text => "QUOTE(id)",
        }
    }

    fn uuid(number: u128) -> String {
        format!("x'{number:032x}'")
    }
}

#[cfg(feature = "sqlite")]
#[path = "."]
mod sqlite {
    use job_partition::Key;
    use job_test::sqlite::{Conn, Db};
    use std::time::Duration;
    #[path = "only/sqlite.rs"]
    mod only;
    #[path = "suite/mod.rs"]
    mod suite;

    const UUID: &str = "BLOB";
    const KILL: Option<&str> = None;
    const IMPLICIT_COMMIT: Option<&str> = None;
    const SWALLOWED_ROLLBACK: Option<(&str, &str)> = Some((
        "CREATE TABLE taken (id INT PRIMARY KEY); INSERT INTO taken VALUES (1)",
        "INSERT OR ROLLBACK INTO taken VALUES (1)",
    ));
    const MANY: u16 = 33_000; // binds are 32,766 at most
    const PLACEHOLDER: &str = "?1";
    const REFUSE_AT_COMMIT: Option<&str> = None;
    const LOCKED_TABLE: Option<(&str, &str, &str)> = None;
    const SHORT_IDLE: Option<(&str, Duration)> = None;
    const SESSION: &str = "SELECT 0 AS number";

    fn literal(_: Key) -> &'static str {
        "quote(id)"
    }

    fn uuid(number: u128) -> String {
        format!("x'{number:032x}'")
    }
}
