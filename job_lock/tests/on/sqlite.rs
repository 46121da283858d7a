//! What the suite must know of SQLite, and what only SQLite does.

use super::suite::suspensions::{Suspended, after_each_statement};
use super::{Conn, Db};
use diesel::connection::SimpleConnection;
use diesel::prelude::*;
use diesel::sql_types::Integer;
use job_lock::{Lock, LockError, LockState, Slot, Wait};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::sync::mpsc::channel;
use std::thread;
use std::time::Duration;

pub(super) const ONE_WRITER: bool = true;
/// Whether those who wait for a lock are served in the order in which they came.
pub(super) const SERVES_IN_ORDER: bool = false;
pub(super) const FOR_UPDATE: &str = "";
/// A reader's snapshot is there in WAL mode only.
pub(super) const LEVELS: &[&str] = &["PRAGMA journal_mode = WAL"];
pub(super) const SETTINGS: &[&str] = &["PRAGMA journal_mode = WAL", "PRAGMA journal_mode = DELETE"];
/// What may become of a process that is suspended depends on these.
pub(super) const SESSIONS: &[&str] = SETTINGS;
pub(super) const KILL: Option<&str> = None;
/// How a session's statement is ended, and how many sessions wait for a lock.
pub(super) const CANCEL: Option<(&str, &str)> = None;
pub(super) const FREE_ALL: Option<&str> = None;
pub(super) const LISTED_FREE: LockState = LockState::Unknown;
pub(super) const LISTED_HELD: LockState = LockState::Unknown;
pub(super) const OWNER_HAS: &str = "/";
pub(super) const LOG_NAME: &str = "sqlite";
/// How a closure may end its transaction, so that the database commits or rolls back.
pub(super) const ENDINGS: &[&str] = &[
    "COMMIT",
    "ROLLBACK",
    "COMMIT; BEGIN",
    "ROLLBACK; BEGIN",
    "CREATE TABLE unlike (n BIGINT UNIQUE); INSERT OR ROLLBACK INTO unlike VALUES (1), (1)",
];
/// They do not wait there: they try again.
pub(super) const RENEWALS_THAT_WAIT: Option<&str> = None;
pub(super) const READ_ONLY: Option<&str> = None;
pub(super) const TIME_ZONES: &[&str] = &[];
/// Here the session's own functions come before the database's.
pub(super) const PRETEND_TO_BE_OLD: Option<fn(&mut Conn)> = Some(|conn| {
    sqlite_version_utils::register_impl(conn, || "3.9.2".to_owned()).unwrap();
});

#[diesel::declare_sql_function]
extern "SQL" {
    fn sqlite_version() -> diesel::sql_types::Text;
}

pub(super) fn refused_urls(_: &Db) -> Vec<String> {
    vec!["/nowhere/at/all.sqlite3".to_owned()]
}

/// Whether nobody keeps the file's write lock for seconds.
pub(super) fn may_write(db: &Db) -> bool {
    let conn = &mut db.connect();
    conn.batch_execute("PRAGMA busy_timeout = 2000; BEGIN IMMEDIATE; ROLLBACK")
        .is_ok()
}

pub(super) fn session_id(_: &mut Conn) -> i64 {
    unreachable!("SQLite has no sessions")
}

pub(super) fn session_level(_: &mut Conn) -> String {
    unreachable!("SQLite has no isolation levels")
}

pub(super) fn set_wait_limit(conn: &mut Conn, seconds: i64) {
    conn.batch_execute(&format!("PRAGMA busy_timeout = {seconds}"))
        .unwrap();
}

pub(super) fn wait_limit(conn: &mut Conn) -> i64 {
    let limit: i32 = diesel::dsl::sql::<Integer>("PRAGMA busy_timeout")
        .get_result(conn)
        .unwrap();
    limit.into()
}

pub(super) fn prepare_to_break_a_commit(db: &Db, conn: &mut Conn) {
    conn.batch_execute("PRAGMA foreign_keys = ON").unwrap();
    db.execute(
        "CREATE TABLE parents (n BIGINT PRIMARY KEY);
         CREATE TABLE children (n BIGINT REFERENCES parents (n) DEFERRABLE INITIALLY DEFERRED)",
    );
}

pub(super) fn break_the_commit(_: &Db, conn: &mut Conn) {
    conn.batch_execute("INSERT INTO children VALUES (1)").unwrap();
}

/// Such an error ends the whole transaction, and each later statement is committed at once.
#[test]
fn an_error_that_ends_the_transaction_and_is_swallowed_is_not_a_success() {
    let db = Db::new();
    let conn = &mut db.connect();
    conn.batch_execute("CREATE TABLE unlike (n BIGINT UNIQUE)")
        .unwrap();
    Lock::create(conn, "a").unwrap();
    let result = Lock::synchronize(conn, "a", |locked| {
        let _ = locked
            .conn()
            .batch_execute("INSERT OR ROLLBACK INTO unlike VALUES (1), (1)");
        Ok::<_, LockError>(())
    });
    assert!(matches!(result, Err(LockError::Lost(_))), "{result:?}");
    Lock::synchronize(conn, "a", |_| Ok::<_, LockError>(())).unwrap();
}

/// A slot is a lease there, and its errors are a slot's all the same.
#[test]
fn a_slot_that_is_anothers_is_lost_as_a_slot() {
    let db = Db::new();
    let mut slot = Slot::claim(&Arc::new(db.manager()), "numbers", 1)
        .unwrap()
        .unwrap();
    db.execute("UPDATE locks SET token = token + 1");
    for _ in 0..2 {
        let lost = slot.transaction(|_| -> Result<(), LockError> { panic!("ran") });
        let Err(LockError::SlotLost { namespace, number: 0 }) = lost else {
            panic!("{lost:?}");
        };
        assert_eq!(namespace, "numbers");
    }
    assert!(matches!(slot.check(), Err(LockError::SlotLost { .. })));
}

#[test]
fn no_busy_timeout_is_needed() {
    let db = Db::new();
    Lock::create(&mut db.connect(), "a").unwrap();
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                let conn = &mut Conn::establish(db.url()).unwrap();
                for _ in 0..25 {
                    Lock::synchronize(conn, "a", |_| Ok::<_, LockError>(())).unwrap();
                }
            });
        }
    });
    assert_eq!(db.count("SELECT token FROM locks"), 100);
}

/// As while a connection that was the last one is closed.
#[test]
fn a_file_that_nobody_may_read_is_busy() {
    let db = Db::new();
    let conn = &mut db.connect();
    Lock::create(conn, "a").unwrap();
    conn.batch_execute("PRAGMA locking_mode = EXCLUSIVE; BEGIN EXCLUSIVE")
        .unwrap();
    let leased = Lock::lease_on("a", std::time::Duration::from_secs(60))
        .wait(job_lock::Wait::No)
        .hold(&Arc::new(db.manager()), |_| -> Result<(), LockError> {
            panic!("ran")
        });
    assert!(matches!(leased, Err(LockError::Busy(_))), "{leased:?}");
}

/// Runs `meanwhile` in another thread, and has a connection that lets nobody read or write the file until then and a little
/// longer.
fn while_exclusive(db: &Db, meanwhile: impl FnOnce() + Send) {
    let conn = &mut db.connect();
    conn.batch_execute("BEGIN EXCLUSIVE").unwrap();
    let (begun, is_begun) = channel();
    std::thread::scope(|scope| {
        scope.spawn(move || {
            begun.send(()).unwrap();
            meanwhile();
        });
        is_begun.recv().unwrap();
        // So long that it has met the writer.
        std::thread::sleep(Duration::from_millis(100));
        conn.batch_execute("COMMIT").unwrap();
    });
}

#[test]
fn a_busy_file_is_not_taken_for_slots_that_are_taken() {
    let db = Db::new();
    let manager = Arc::new(db.manager());
    let (written, is_written) = channel();
    thread::scope(|scope| {
        let mut conn = db.connect();
        conn.batch_execute("BEGIN IMMEDIATE").unwrap();
        scope.spawn(move || {
            // Longer than any look at it.
            thread::sleep(Duration::from_secs(1));
            written.send(()).unwrap();
            conn.batch_execute("COMMIT").unwrap();
        });
        let slot = Slot::claim(&manager, "numbers", 2).unwrap();
        assert_eq!(slot.map(|slot| slot.number()), Some(0));
        is_written.recv().unwrap();
    });
    let mut conn = db.connect();
    conn.batch_execute("BEGIN IMMEDIATE").unwrap();
    let result = Slot::claim(&manager, "numbers", 2);
    let Err(LockError::Busy(name)) = &result else {
        panic!("{result:?}")
    };
    assert_eq!(name, "slot/numbers/0");
    conn.batch_execute("COMMIT").unwrap();
    // Only who has a slot takes it from others.
    let _slot = Slot::claim(&manager, "numbers", 1).unwrap().unwrap();
    assert!(Slot::claim(&manager, "numbers", 1).unwrap().is_none());
}

/// A transaction that only reads keeps all others from their COMMIT there.
#[test]
fn a_candidate_that_is_suspended_in_a_look_keeps_no_writer_waiting() {
    let db = Db::new();
    let look = |suspended: &Suspended, _: &AtomicBool| {
        Lock::lease(suspended, "nobody-made-it", Duration::from_secs(60), |_| {
            Ok::<_, LockError>(())
        })
    };
    after_each_statement(&db, "PRAGMA journal_mode = DELETE", look, |round| {
        let mut conn = db.connect();
        conn.batch_execute("PRAGMA busy_timeout = 2000")
            .and_then(|()| conn.batch_execute(&format!("CREATE TABLE t{round} (n BIGINT)")))
            .map_err(|error| error.to_string())
    });
}

#[test]
fn a_writer_who_lets_nobody_read_is_waited_for() {
    let db = Db::new();
    // It stays with the file.
    db.execute("PRAGMA journal_mode = DELETE");
    Lock::create(&mut db.connect(), "a").unwrap();
    let manager = Arc::new(diesel::r2d2::ConnectionManager::<Conn>::new(db.url()));
    let minute = Duration::from_secs(60);
    while_exclusive(&db, || {
        let nobody_waits = Lock::lease_on("a", minute)
            .wait(Wait::No)
            .hold(&manager, |_| Ok::<_, LockError>(()));
        assert!(
            matches!(nobody_waits, Err(LockError::Busy(_))),
            "{nobody_waits:?}"
        );
    });
    while_exclusive(&db, || {
        Lock::lease(&manager, "a", minute, |_| Ok::<_, LockError>(())).unwrap();
    });
    while_exclusive(&db, || {
        assert!(Slot::claim(&manager, "numbers", 1).unwrap().is_some());
    });
    while_exclusive(&db, || {
        assert!(
            Lock::list(&mut open(db.url()))
                .unwrap()
                .iter()
                .any(|lock| lock.name == "a")
        );
    });
    // Inside a transaction too, where it looks whose the lock is.
    while_exclusive(&db, || {
        open(db.url())
            .transaction(|conn| Lock::on("a").join().synchronize(conn, |_| Ok::<_, LockError>(())))
            .unwrap();
    });
}

pub(super) fn open(url: &str) -> Conn {
    Conn::establish(url).unwrap()
}

pub(super) fn url_with_a_name(_: &Db) -> String {
    unreachable!("SQLite has no sessions")
}

pub(super) fn end_named_sessions(_: &Db) {
    unreachable!("SQLite has no sessions")
}
