//! What the suite must know of MySQL and MariaDB, and what only they do.

use super::suite::suspensions::Suspended;
use super::{Conn, Db};
use diesel::connection::SimpleConnection;
use diesel::prelude::*;
use diesel::sql_types::{BigInt, Text};
use job_lock::{Lock, LockError, LockState, Wait};
use std::sync::Barrier;
use std::sync::mpsc::channel;
use std::thread;
use std::time::Duration;

pub(super) const ONE_WRITER: bool = false;
/// Whether those who wait for a lock are served in the order in which they came.
pub(super) const SERVES_IN_ORDER: bool = false;
pub(super) const FOR_UPDATE: &str = "FOR UPDATE";
pub(super) const LEVELS: &[&str] = &[
    "SET SESSION TRANSACTION ISOLATION LEVEL READ UNCOMMITTED",
    "SET SESSION TRANSACTION ISOLATION LEVEL READ COMMITTED",
    "SET SESSION TRANSACTION ISOLATION LEVEL REPEATABLE READ",
    "SET SESSION TRANSACTION ISOLATION LEVEL SERIALIZABLE",
];
pub(super) const SETTINGS: &[&str] = LEVELS;
/// What may become of a process that is suspended depends on these.
pub(super) const SESSIONS: &[&str] = &[
    "SET autocommit = 1",
    "SET autocommit = 0; SET SESSION TRANSACTION ISOLATION LEVEL SERIALIZABLE",
];
pub(super) const KILL: Option<&str> = Some("KILL ID");
/// How a session's statement is ended, and how many sessions wait for a lock.
pub(super) const CANCEL: Option<(&str, &str)> = Some((
    "KILL QUERY ID",
    "SELECT COUNT(*) FROM information_schema.processlist WHERE id = ID AND info LIKE 'UPDATE locks%'",
));
pub(super) const FREE_ALL: Option<&str> = Some("SELECT RELEASE_ALL_LOCKS()");
pub(super) const LISTED_FREE: LockState = LockState::Free;
pub(super) const LISTED_HELD: LockState = LockState::Held;
pub(super) const OWNER_HAS: &str = "/";
pub(super) const LOG_NAME: &str = "mysql";
/// How a closure may end its transaction, so that the server commits or rolls back.
pub(super) const ENDINGS: &[&str] = &[
    "COMMIT",
    "ROLLBACK",
    "COMMIT; BEGIN",
    "ROLLBACK; BEGIN",
    "BEGIN",
    "CREATE TABLE of_mine (n BIGINT)",
];
pub(super) const RENEWALS_THAT_WAIT: Option<&str> = Some(
    "SELECT COUNT(*) FROM information_schema.processlist
     WHERE db = DATABASE() AND info LIKE 'UPDATE locks SET expires_at%'",
);
/// It is the whole server that is.
pub(super) const READ_ONLY: Option<&str> = None;
pub(super) const TIME_ZONES: &[&str] = &[
    "SET time_zone = '+00:00'",
    "SET time_zone = '+13:00'",
    "SET time_zone = '-00:07'",
];
pub(super) const PRETEND_TO_BE_OLD: Option<fn(&mut Conn)> = None;

pub(super) fn refused_urls(db: &Db) -> Vec<String> {
    let (server, _) = db.url().rsplit_once('/').unwrap();
    vec![
        db.url().replacen("//root@", "//root:wrong@", 1),
        format!("{server}/nowhere"),
    ]
}

pub(super) fn may_write(_: &Db) -> bool {
    // The server ends each statement that it has begun, whatever the client does.
    true
}

pub(super) fn session_id(conn: &mut Conn) -> i64 {
    diesel::dsl::sql::<BigInt>("SELECT CONNECTION_ID()")
        .get_result(conn)
        .unwrap()
}

pub(super) fn session_level(conn: &mut Conn) -> String {
    diesel::dsl::sql::<Text>(
        "SELECT VARIABLE_VALUE FROM information_schema.SESSION_VARIABLES
         WHERE VARIABLE_NAME IN ('TX_ISOLATION', 'TRANSACTION_ISOLATION') LIMIT 1",
    )
    .get_result(conn)
    .unwrap()
}

pub(super) fn set_wait_limit(conn: &mut Conn, seconds: i64) {
    conn.batch_execute(&format!("SET SESSION innodb_lock_wait_timeout = {seconds}"))
        .unwrap();
}

pub(super) fn wait_limit(conn: &mut Conn) -> i64 {
    diesel::dsl::sql::<BigInt>("SELECT CAST(@@SESSION.innodb_lock_wait_timeout AS SIGNED)")
        .get_result(conn)
        .unwrap()
}

pub(super) fn prepare_to_break_a_commit(_: &Db, _: &mut Conn) {}

/// There are no deferred constraints, so that only the session's end breaks a COMMIT.
pub(super) fn break_the_commit(db: &Db, conn: &mut Conn) {
    db.execute(&format!("KILL {}", session_id(conn)));
}

/// The server rolls the whole transaction back then, and commits each later statement at once.
#[test]
fn a_deadlock_that_the_closure_swallows_is_not_a_success() {
    let db = Db::new();
    let conn = &mut db.connect();
    for name in ["a", "b"] {
        Lock::create(conn, name).unwrap();
    }
    let both_hold_one = Barrier::new(2);
    let results: Vec<Result<bool, LockError>> = thread::scope(|scope| {
        let threads: Vec<_> = [("a", "b"), ("b", "a")]
            .into_iter()
            .map(|(first, second)| {
                let (db, both_hold_one) = (&db, &both_hold_one);
                scope.spawn(move || {
                    Lock::synchronize(&mut db.connect(), first, |outer| {
                        both_hold_one.wait();
                        Ok(outer.synchronize(second, |_| Ok::<_, LockError>(())).is_ok())
                    })
                })
            })
            .collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).collect()
    });
    assert!(
        matches!(
            results.as_slice(),
            [Ok(true), Err(LockError::Lost(_))] | [Err(LockError::Lost(_)), Ok(true)]
        ),
        "{results:?}"
    );
}

/// Diesel knows nothing of such a transaction.
#[test]
fn what_a_session_without_autocommit_has_not_committed_is_not_committed_by_making_a_lock() {
    let db = Db::new();
    db.execute("CREATE TABLE notes (n BIGINT NOT NULL)");
    let conn = &mut db.connect();
    conn.batch_execute("SET autocommit = 0; INSERT INTO notes VALUES (1)")
        .unwrap();
    assert!(matches!(Lock::create(conn, "a"), Err(LockError::Database(_))));
    conn.batch_execute("ROLLBACK").unwrap();
    assert_eq!(db.bigints("SELECT n FROM notes"), [] as [i64; 0]);
    assert!(Lock::create(conn, "a").unwrap());
    let mode = diesel::dsl::sql::<BigInt>("SELECT @@SESSION.autocommit").get_result(conn);
    assert_eq!(mode, Ok(0));
}

/// Another takes the row between the look and the UPDATE of a candidate, which waits then, and is ended by KILL QUERY.
#[test]
fn a_candidate_whose_statement_was_killed_is_not_told_that_another_has_the_lease() {
    let db = Db::new();
    Lock::create(&mut db.connect(), "a").unwrap();
    let url = db.url().to_owned();
    let kill = move |query: &str| {
        if query.contains("SKIP LOCKED") {
            let mut conn = <Conn as diesel::Connection>::establish(&url).unwrap();
            conn.batch_execute("BEGIN; UPDATE locks SET token = token")
                .unwrap();
            thread::spawn(move || kill_candidate(conn));
        }
        false
    };
    let candidate = Suspended::new(&db, "SET autocommit = 1", kill, channel().1);
    // It waits for a second only, in which a slow machine may not get to kill it.
    let mut results = (0..20).map(|_| {
        Lock::lease_on("a", Duration::from_secs(60))
            .wait(Wait::No)
            .hold(&candidate, |_| Ok::<_, LockError>(()))
    });
    let told = results.find(|result| !matches!(result, Err(LockError::Busy(_))));
    assert!(matches!(told, Some(Err(LockError::Database(_)))), "{told:?}");
}

fn kill_candidate(mut conn: Conn) {
    let candidates = "SELECT id FROM information_schema.processlist
         WHERE db = DATABASE() AND info LIKE 'UPDATE locks SET token = token + 1%'";
    for _ in 0..200 {
        let waiting: Vec<i64> = diesel::dsl::sql::<BigInt>(candidates).load(&mut conn).unwrap();
        if let Some(id) = waiting.first() {
            conn.batch_execute(&format!("KILL QUERY {id}")).unwrap();
            break;
        }
        thread::sleep(Duration::from_millis(5));
    }
    conn.batch_execute("ROLLBACK").unwrap();
}

#[test]
fn forever_outlasts_the_servers_limit_on_waiting() {
    let db = Db::new();
    let conn = &mut db.connect();
    Lock::create(conn, "a").unwrap();
    let waiter = &mut db.connect();
    set_wait_limit(waiter, 1);
    let id = session_id(waiter);
    thread::scope(|scope| {
        Lock::synchronize(conn, "a", |_| {
            scope.spawn(|| {
                Lock::synchronize(waiter, "a", |_| Ok::<_, LockError>(())).unwrap();
            });
            job_test::eventually("the waiter has waited longer than its limit", || {
                db.count(&format!(
                    "SELECT COUNT(*) FROM information_schema.processlist
                     WHERE id = {id} AND info LIKE 'UPDATE locks%' AND time > 2"
                )) > 0
            });
            Ok::<_, LockError>(())
        })
        .unwrap();
    });
    assert_eq!(db.count("SELECT token FROM locks"), 2);
}

pub(super) fn open(url: &str) -> Conn {
    Conn::establish(url).unwrap()
}

/// Every test has a database of its own, by which its sessions are told from others.
pub(super) fn url_with_a_name(db: &Db) -> String {
    db.url().to_owned()
}

pub(super) fn end_named_sessions(db: &Db) {
    let ids = db.bigints(
        "SELECT CAST(id AS SIGNED) FROM information_schema.processlist WHERE db = DATABASE() AND id <> CONNECTION_ID()",
    );
    for id in ids {
        let conn = &mut db.connect();
        // Some end by themselves in between.
        let _ = conn.batch_execute(&format!("KILL {id}"));
    }
}

#[test]
fn a_lease_outlives_a_restart_of_the_server() {
    let mut server = job_test::server::MariadbServer::start();
    let url = server.url();
    super::suite::a_lease_outlives_a_restart(&url, || {
        server.kill();
        server.start_again();
    });
}

/// The server rolls the whole transaction back then, and commits each later statement at once.
#[test]
fn a_fenced_transaction_that_a_deadlock_has_ended_is_not_a_success() {
    let db = Db::new();
    Lock::create(&mut db.connect(), "a").unwrap();
    db.execute("CREATE TABLE rows_of_mine (n BIGINT PRIMARY KEY, m BIGINT); INSERT INTO rows_of_mine VALUES (1, 0), (2, 0)");
    let manager = std::sync::Arc::new(db.manager());
    let both_hold_one = Barrier::new(2);
    let namespace = db.url().rsplit('/').next().unwrap();
    let update = |conn: &mut Conn, n: i64| {
        conn.batch_execute(&format!("UPDATE rows_of_mine SET m = m + 1 WHERE n = {n}"))
    };
    let swallow = |conn: &mut Conn, first: i64| -> Result<bool, LockError> {
        update(conn, first)?;
        both_hold_one.wait();
        Ok(update(conn, 3 - first).is_ok())
    };
    let (leased, slotted) = thread::scope(|scope| {
        let leased = scope.spawn(|| {
            let ttl = std::time::Duration::from_secs(60);
            Lock::lease(&manager, "a", ttl, |lease| {
                lease.transaction(|conn| swallow(conn, 1))
            })
        });
        let mut slot = job_lock::Slot::claim(&manager, namespace, 1).unwrap().unwrap();
        let slotted = slot.transaction(|conn| swallow(conn, 2));
        (leased.join().unwrap(), slotted)
    });
    assert!(
        matches!(
            (&leased, &slotted),
            (Ok(true), Err(LockError::Lost(_))) | (Err(LockError::Lost(_)), Ok(true))
        ),
        "{leased:?} {slotted:?}"
    );
}
