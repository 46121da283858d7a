use super::{Conn, Db};
use diesel::connection::SimpleConnection;
use diesel::prelude::*;
use diesel::sql_types::BigInt;
use job_lock::{Lock, LockError};
use std::sync::mpsc::channel;
use std::thread;

/// A database with a lock of this name, and with two tables for the closures.
pub(super) fn db_with(names: &[&str]) -> Db {
    let db = Db::new();
    db.execute(
        "CREATE TABLE counter (n BIGINT NOT NULL); INSERT INTO counter VALUES (0);
         CREATE TABLE notes (n BIGINT NOT NULL)",
    );
    let conn = &mut db.connect();
    for name in names {
        Lock::create(conn, name).unwrap();
    }
    db
}

/// Runs `meanwhile` while another connection, in another thread, holds the lock.
pub(super) fn while_held<T>(db: &Db, name: &str, meanwhile: impl FnOnce() -> T) -> T {
    let (held, is_held) = channel();
    // Its sender goes when `meanwhile` ends, also by a panic, and that is the signal.
    let (release, is_released) = channel::<()>();
    thread::scope(|scope| {
        scope.spawn(move || {
            Lock::synchronize(&mut db.connect(), name, |_| {
                held.send(()).unwrap();
                let _ = is_released.recv();
                Ok::<_, LockError>(())
            })
            .unwrap();
        });
        is_held.recv().unwrap();
        let value = meanwhile();
        drop(release);
        value
    })
}

pub(super) fn number(conn: &mut Conn, sql: &str) -> i64 {
    diesel::dsl::sql::<BigInt>(sql).get_result(conn).unwrap()
}

pub(super) fn counter(conn: &mut Conn) -> i64 {
    number(conn, "SELECT n FROM counter")
}

/// Reads, and writes what it has read plus one: two at once would lose an increment.
pub(super) fn increment(conn: &mut Conn) {
    let n = counter(conn);
    thread::yield_now();
    conn.batch_execute(&format!("UPDATE counter SET n = {}", n + 1))
        .unwrap();
}

pub(super) fn note(conn: &mut Conn, n: i64) -> QueryResult<()> {
    conn.batch_execute(&format!("INSERT INTO notes VALUES ({n})"))
}

pub(super) fn notes(db: &Db) -> Vec<i64> {
    db.bigints("SELECT n FROM notes ORDER BY n")
}

/// Runs `meanwhile` while another connection has the row locked in a transaction that writes nothing to it.
pub(super) fn while_row_locked(db: &Db, meanwhile: impl FnOnce()) {
    use diesel::Connection;
    db.connect()
        .transaction(|conn| {
            conn.batch_execute("UPDATE locks SET token = token")?;
            meanwhile();
            QueryResult::Ok(())
        })
        .unwrap();
}
