//! What the suite must know of PostgreSQL, and what only PostgreSQL does.

#[path = "bouncer.rs"]
mod bouncer; // behind PgBouncer

use super::{Conn, Db};
use diesel::connection::SimpleConnection;
use diesel::prelude::*;
use diesel::sql_types::{BigInt, Text};
use job_lock::{Lock, LockError, LockState};

pub(super) const ONE_WRITER: bool = false;
/// Whether those who wait for a lock are served in the order in which they came.
pub(super) const SERVES_IN_ORDER: bool = true;
pub(super) const FOR_UPDATE: &str = "FOR UPDATE";
pub(super) const LEVELS: &[&str] = &[
    "SET default_transaction_isolation = 'read committed'",
    "SET default_transaction_isolation = 'repeatable read'",
    "SET default_transaction_isolation = 'serializable'",
];
pub(super) const SETTINGS: &[&str] = LEVELS;
/// What may become of a process that is suspended depends on these.
pub(super) const SESSIONS: &[&str] =
    &["SET SESSION CHARACTERISTICS AS TRANSACTION ISOLATION LEVEL SERIALIZABLE"];
pub(super) const KILL: Option<&str> = Some("SELECT pg_terminate_backend(ID)");
/// How a session's statement is ended, and how many sessions wait for a lock.
pub(super) const CANCEL: Option<(&str, &str)> = Some((
    "SELECT pg_cancel_backend(ID)",
    "SELECT count(*) FROM pg_stat_activity WHERE pid = ID AND wait_event_type = 'Lock'",
));
pub(super) const FREE_ALL: Option<&str> = Some("SELECT pg_advisory_unlock_all()");
pub(super) const LISTED_FREE: LockState = LockState::Free;
pub(super) const LISTED_HELD: LockState = LockState::Held;
pub(super) const OWNER_HAS: &str = "pid ";
pub(super) const LOG_NAME: &str = "postgres";
/// How a closure may end its transaction, so that the server commits or rolls back.
pub(super) const ENDINGS: &[&str] = &["COMMIT", "ROLLBACK", "COMMIT; BEGIN", "ROLLBACK; BEGIN"];
pub(super) const RENEWALS_THAT_WAIT: Option<&str> = Some(
    "SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND query LIKE 'UPDATE locks SET expires_at%'",
);
/// As on a server that has become another's copy.
pub(super) const READ_ONLY: Option<&str> = Some("SET default_transaction_read_only = on");
pub(super) const TIME_ZONES: &[&str] = &[
    "SET timezone = 'UTC'",
    "SET timezone = 'Pacific/Apia'",
    "SET timezone = '-00:07'",
];
/// Here the session's own functions come before the server's.
pub(super) const PRETEND_TO_BE_OLD: Option<fn(&mut Conn)> = Some(|conn| {
    conn.batch_execute(
        "CREATE OR REPLACE FUNCTION current_setting(text) RETURNS text LANGUAGE sql AS $$ SELECT CASE $1
           WHEN 'server_version_num' THEN '110022' WHEN 'server_encoding' THEN 'UTF8' ELSE '11.22' END $$;
         SELECT set_config('search_path', quote_ident(current_schema()) || ', pg_catalog', false)",
    )
    .unwrap();
});

pub(super) fn refused_urls(db: &Db) -> Vec<String> {
    let url = db.url();
    vec![
        url.replacen("/postgres?", "/nowhere?", 1),
        url.replacen("//postgres@", "//nobody@", 1),
    ]
}

pub(super) fn may_write(_: &Db) -> bool {
    // The server ends each statement that it has begun, whatever the client does.
    true
}

pub(super) fn session_id(conn: &mut Conn) -> i64 {
    diesel::dsl::sql::<BigInt>("SELECT pg_backend_pid()::bigint")
        .get_result(conn)
        .unwrap()
}

pub(super) fn session_level(conn: &mut Conn) -> String {
    diesel::dsl::sql::<Text>("SHOW default_transaction_isolation")
        .get_result(conn)
        .unwrap()
}

pub(super) fn set_wait_limit(conn: &mut Conn, seconds: i64) {
    conn.batch_execute(&format!("SET lock_timeout = '{seconds}s'"))
        .unwrap();
}

pub(super) fn wait_limit(conn: &mut Conn) -> i64 {
    let limit: String = diesel::dsl::sql::<Text>("SHOW lock_timeout")
        .get_result(conn)
        .unwrap();
    limit.trim_end_matches('s').parse().unwrap()
}

pub(super) fn prepare_to_break_a_commit(db: &Db, _: &mut Conn) {
    db.execute("CREATE TABLE unlike (n BIGINT UNIQUE DEFERRABLE INITIALLY DEFERRED)");
}

pub(super) fn break_the_commit(_: &Db, conn: &mut Conn) {
    conn.batch_execute("INSERT INTO unlike VALUES (1), (1)").unwrap();
}

/// PostgreSQL answers such a COMMIT with a ROLLBACK and no error.
#[test]
fn an_error_that_the_closure_swallows_is_not_a_success() {
    let db = Db::new();
    let conn = &mut db.connect();
    Lock::create(conn, "a").unwrap();
    let result = Lock::synchronize(conn, "a", |locked| {
        let _ = locked.conn().batch_execute("SELECT nonsense FROM nowhere");
        Ok::<_, LockError>(())
    });
    assert!(matches!(result, Err(LockError::Lost(_))), "{result:?}");
    Lock::synchronize(conn, "a", |_| Ok::<_, LockError>(())).unwrap();
}

#[test]
fn a_limit_that_the_session_was_given_ends_the_wait_as_busy() {
    let db = Db::new();
    let conn = &mut db.connect();
    Lock::create(conn, "a").unwrap();
    conn.batch_execute("SET lock_timeout = '10ms'").unwrap();
    Lock::synchronize(&mut db.connect(), "a", |_| {
        let result = Lock::synchronize(conn, "a", |_| Ok::<_, LockError>(()));
        assert!(matches!(result, Err(LockError::Busy(_))), "{result:?}");
        Ok::<_, LockError>(())
    })
    .unwrap();
}

pub(super) fn open(url: &str) -> Conn {
    Conn::establish(url).unwrap()
}

/// The same database, with sessions that can be told from others.
pub(super) fn url_with_a_name(db: &Db) -> String {
    format!("{}&application_name={}", db.url(), name(db))
}

pub(super) fn end_named_sessions(db: &Db) {
    db.execute(&format!(
        "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = '{}'",
        name(db)
    ));
}

/// Such a name has at most 63 bytes.
fn name(db: &Db) -> &str {
    db.url().rsplit("%3D").next().unwrap()
}

#[test]
fn a_lease_outlives_a_restart_of_the_server() {
    let server = job_test::server::PostgresServer::start();
    super::suite::a_lease_outlives_a_restart(&server.url(), || {
        server.stop_immediate();
        server.start_again();
    });
}
