use super::support::{db_with, note, notes};
use diesel::Connection;
use diesel::connection::SimpleConnection;
use job_lock::{Lock, LockConnection, LockError, Wait};
use std::panic::{AssertUnwindSafe, catch_unwind};

fn panic_inside<C: LockConnection>(conn: &mut C, name: &str) {
    let lock = Lock::on(name).join();
    let result = catch_unwind(AssertUnwindSafe(|| {
        lock.synchronize(conn, |locked| -> Result<(), LockError> {
            locked.conn().batch_execute("INSERT INTO notes VALUES (666)")?;
            panic!("as the test wants it");
        })
    }));
    let message = *result.unwrap_err().downcast::<&str>().unwrap();
    assert_eq!(message, "as the test wants it");
}

#[test]
fn a_panic_rolls_back_and_goes_on_and_the_connection_can_be_used() {
    let db = db_with(&["a"]);
    let conn = &mut db.connect();
    panic_inside(conn, "a");
    // The lock is free, and what is written now is committed.
    Lock::on("a")
        .wait(Wait::No)
        .synchronize(&mut db.connect(), |_| Ok::<_, LockError>(()))
        .unwrap();
    conn.transaction(|conn| note(conn, 1)).unwrap();
    Lock::synchronize(conn, "a", |locked| note(locked.conn(), 2)).unwrap();
    assert_eq!(notes(&db), [1, 2]);
}

#[test]
fn a_panic_in_a_joined_closure_rolls_back_to_the_callers_depth() {
    let db = db_with(&["a"]);
    db.connect()
        .transaction(|conn| {
            note(conn, 1)?;
            panic_inside(conn, "a");
            note(conn, 2)
        })
        .unwrap();
    assert_eq!(notes(&db), [1, 2]);
}

#[test]
fn a_panic_below_savepoints_rolls_back_all_of_them() {
    let db = db_with(&["a"]);
    let conn = &mut db.connect();
    let result = catch_unwind(AssertUnwindSafe(|| {
        Lock::synchronize(conn, "a", |locked| {
            locked.conn().transaction(|conn| {
                note(conn, 1)?;
                conn.transaction(|_| -> diesel::QueryResult<()> { panic!("as the test wants it") })
            })
        })
    }));
    assert!(result.is_err());
    Lock::synchronize(conn, "a", |locked| note(locked.conn(), 2)).unwrap();
    assert_eq!(notes(&db), [2]);
}

#[test]
fn a_pool_of_one_goes_on_after_a_panic_and_an_error() {
    let db = db_with(&["a"]);
    let pool = db.pool(1);
    panic_inside(&mut pool.get().unwrap(), "a");
    let failed = Lock::synchronize(&mut pool.get().unwrap(), "a", |_| {
        Err::<(), _>(anyhow::anyhow!("no"))
    });
    assert_eq!(failed.unwrap_err().to_string(), "no");
    Lock::synchronize(&mut pool.get().unwrap(), "a", |locked| {
        locked.conn().batch_execute("INSERT INTO notes VALUES (1)")
    })
    .unwrap();
    assert_eq!(notes(&db), [1]);
}
