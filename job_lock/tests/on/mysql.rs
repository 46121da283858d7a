//! What the suite must know of MySQL and MariaDB, and what only they do.

use super::{Conn, Db};
use diesel::connection::SimpleConnection;
use diesel::prelude::*;
use diesel::sql_types::{BigInt, Text};
use job_lock::{Lock, LockError, LockState};
use std::sync::Barrier;
use std::thread;

pub(super) const ONE_WRITER: bool = false;
pub(super) const FOR_UPDATE: &str = "FOR UPDATE";
pub(super) const LEVELS: &[&str] = &[
    "SET SESSION TRANSACTION ISOLATION LEVEL READ UNCOMMITTED",
    "SET SESSION TRANSACTION ISOLATION LEVEL READ COMMITTED",
    "SET SESSION TRANSACTION ISOLATION LEVEL REPEATABLE READ",
    "SET SESSION TRANSACTION ISOLATION LEVEL SERIALIZABLE",
];
pub(super) const SETTINGS: &[&str] = LEVELS;
pub(super) const KILL: Option<&str> = Some("KILL ID");
pub(super) const FREE_ALL: Option<&str> = Some("SELECT RELEASE_ALL_LOCKS()");
pub(super) const LISTED_FREE: LockState = LockState::Free;
pub(super) const LISTED_HELD: LockState = LockState::Held;
pub(super) const OWNER_HAS: &str = "/";
pub(super) const LOG_NAME: &str = "mysql";

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
