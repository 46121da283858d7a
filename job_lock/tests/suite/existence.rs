use super::support::{db_with, note, notes, while_held};
use super::{Conn, Db, on};
use diesel::Connection;
use diesel::connection::SimpleConnection;
use job_lock::{Lock, LockError, Wait};
use std::sync::Barrier;
use std::thread;
use std::time::Duration;

#[test]
fn a_lock_that_does_not_exist_is_unknown_and_the_closure_does_not_run() {
    let db = Db::new();
    let conn = &mut db.connect();
    for wait in [Wait::Forever, Wait::AtMost(Duration::from_secs(60)), Wait::No] {
        let result: Result<(), LockError> = Lock::on("nobody made it")
            .wait(wait)
            .synchronize(conn, |_| panic!("ran without the lock"));
        assert!(matches!(result, Err(LockError::Unknown(name)) if name == "nobody made it"));
    }
    conn.transaction(|conn| {
        let result: Result<(), LockError> = Lock::on("nobody made it")
            .join()
            .synchronize(conn, |_| panic!("ran without the lock"));
        assert!(matches!(result, Err(LockError::Unknown(_))));
        diesel::QueryResult::Ok(())
    })
    .unwrap();
}

/// The post of 2007, to the letter.
fn original_synchronize(conn: &mut Conn, name: &str, block: impl FnOnce()) {
    conn.transaction(|conn| {
        conn.batch_execute(&format!(
            "SELECT name FROM locks WHERE name = '{name}' {}",
            on::FOR_UPDATE
        ))?;
        block();
        diesel::QueryResult::Ok(())
    })
    .unwrap();
}

#[test]
fn the_original_runs_unlocked_where_the_row_is_missing_and_this_one_does_not() {
    let db = Db::new();
    // Both get there only if both are in their blocks at once.
    let both_inside = Barrier::new(2);
    thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                original_synchronize(&mut db.connect(), "missing", || {
                    both_inside.wait();
                });
            });
        }
    });
    let result: Result<(), LockError> =
        Lock::synchronize(&mut db.connect(), "missing", |_| panic!("ran without the lock"));
    assert!(matches!(result, Err(LockError::Unknown(_))));
}

#[test]
fn create_says_whether_it_made_the_lock() {
    let db = Db::new();
    let conn = &mut db.connect();
    assert!(Lock::create(conn, "a").unwrap());
    assert!(!Lock::create(conn, "a").unwrap());
    assert_eq!(db.count("SELECT count(*) FROM locks"), 1);
}

#[test]
fn eight_at_once_make_one_lock() {
    let db = Db::new();
    let start = Barrier::new(8);
    let made: usize = thread::scope(|scope| {
        let threads: Vec<_> = (0..8)
            .map(|_| {
                scope.spawn(|| {
                    let conn = &mut db.connect();
                    start.wait();
                    usize::from(Lock::create(conn, "a").unwrap())
                })
            })
            .collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).sum()
    });
    assert_eq!(made, 1);
}

#[test]
fn create_in_a_callers_transaction_does_not_break_it() {
    let db = db_with(&["there"]);
    db.connect()
        .transaction(|conn| {
            note(conn, 1)?;
            assert!(!Lock::create(conn, "there").unwrap());
            assert!(Lock::create(conn, "new").unwrap());
            assert!(!Lock::create(conn, "new").unwrap());
            note(conn, 2)
        })
        .unwrap();
    assert_eq!(notes(&db), [1, 2]);
    assert_eq!(db.count("SELECT count(*) FROM locks"), 2);
}

#[test]
fn create_after_a_snapshot_that_lacks_the_lock_does_not_break_the_transaction() {
    for level in on::LEVELS {
        let db = db_with(&[]);
        let conn = &mut db.connect();
        conn.batch_execute(level).unwrap();
        conn.transaction(|conn| {
            conn.batch_execute("SELECT n FROM notes")?;
            Lock::create(&mut db.connect(), "a").unwrap();
            match Lock::create(conn, "a") {
                Ok(false) | Err(LockError::Serialization(_) | LockError::Busy(_)) => {}
                other => panic!("{other:?} with {level}"),
            }
            conn.batch_execute("SELECT n FROM notes")
        })
        .unwrap();
    }
}

#[test]
fn create_does_not_wait_for_a_holder() {
    let db = db_with(&["a"]);
    while_held(&db, "a", || {
        assert!(!Lock::create(&mut db.connect(), "a").unwrap())
    });
}

#[test]
fn create_missing_commits_the_lock_first() {
    let db = Db::new();
    let result = Lock::on("a")
        .create_missing()
        .synchronize(&mut db.connect(), |_| Err::<(), _>(anyhow::anyhow!("no")));
    assert_eq!(result.unwrap_err().to_string(), "no");
    assert_eq!(db.count("SELECT count(*) FROM locks WHERE token = 0"), 1);
}

#[test]
fn eight_first_users_at_once_all_get_the_lock() {
    let db = db_with(&[]);
    let start = Barrier::new(8);
    thread::scope(|scope| {
        for n in 0..8 {
            let (db, start) = (&db, &start);
            scope.spawn(move || {
                let conn = &mut db.connect();
                start.wait();
                Lock::on("a")
                    .create_missing()
                    .synchronize(conn, |locked| anyhow::Ok(note(locked.conn(), n)?))
                    .unwrap();
            });
        }
    });
    assert_eq!(notes(&db), [0, 1, 2, 3, 4, 5, 6, 7]);
}

#[test]
fn create_missing_is_an_error_inside_a_transaction() {
    let db = db_with(&[]);
    db.connect()
        .transaction(|conn| {
            let lock = Lock::on("a").create_missing();
            let unjoined = lock.synchronize(conn, |_| Ok::<_, LockError>(()));
            assert!(matches!(unjoined, Err(LockError::InTransaction(_))));
            let joined = lock.join().synchronize(conn, |_| Ok::<_, LockError>(()));
            assert!(matches!(joined, Err(LockError::CreateInTransaction(_))));
            note(conn, 1)
        })
        .unwrap();
    assert_eq!(notes(&db), [1]);
}
