use super::on;
use super::support::{counter, db_with, note, notes};
use diesel::Connection;
use diesel::connection::SimpleConnection;
use job_lock::{Lock, LockError, Wait};

fn is_free(db: &super::Db, name: &str) -> bool {
    let result = Lock::on(name)
        .wait(Wait::No)
        .synchronize(&mut db.connect(), |_| Ok::<_, LockError>(()));
    match result {
        Ok(()) => true,
        Err(LockError::Busy(_)) => false,
        Err(error) => panic!("{error}"),
    }
}

#[test]
fn inside_a_transaction_it_is_an_error_unless_joined() {
    let db = db_with(&["a"]);
    db.connect()
        .transaction(|conn| {
            note(conn, 1)?;
            let result: Result<(), LockError> = Lock::synchronize(conn, "a", |_| panic!("ran"));
            assert!(matches!(result, Err(LockError::InTransaction(name)) if name == "a"));
            note(conn, 2)
        })
        .unwrap();
    assert_eq!(notes(&db), [1, 2]);
    assert!(is_free(&db, "a"));
}

#[test]
fn a_joined_lock_is_held_until_the_callers_commit() {
    let db = db_with(&["a"]);
    db.connect()
        .transaction(|conn| {
            Lock::on("a")
                .join()
                .synchronize(conn, |locked| note(locked.conn(), 1))?;
            assert!(!is_free(&db, "a"));
            diesel::QueryResult::Ok(())
        })
        .unwrap();
    assert!(is_free(&db, "a"));
    assert_eq!(notes(&db), [1]);
}

#[test]
fn an_error_in_a_joined_closure_undoes_its_own_writes_only() {
    let db = db_with(&["a"]);
    db.connect()
        .transaction(|conn| {
            note(conn, 1)?;
            let result = Lock::on("a").join().synchronize(conn, |locked| {
                note(locked.conn(), 2)?;
                Err::<(), _>(anyhow::anyhow!("no"))
            });
            assert_eq!(result.unwrap_err().to_string(), "no");
            note(conn, 3)
        })
        .unwrap();
    assert_eq!(notes(&db), [1, 3]);
    assert_eq!(db.count("SELECT token FROM locks"), 0);
}

#[test]
fn a_callers_transaction_may_join_the_same_lock_twice() {
    let db = db_with(&["a"]);
    db.connect()
        .transaction(|conn| {
            for token in 1..=2 {
                let lock = Lock::on("a").join();
                assert_eq!(
                    lock.synchronize(conn, |locked| Ok::<_, LockError>(locked.token()))
                        .unwrap(),
                    token
                );
            }
            diesel::QueryResult::Ok(())
        })
        .unwrap();
}

#[test]
fn outside_a_transaction_join_changes_nothing() {
    let db = db_with(&["a"]);
    Lock::on("a")
        .join()
        .synchronize(&mut db.connect(), |locked| note(locked.conn(), 1))
        .unwrap();
    assert_eq!(notes(&db), [1]);
}

/// At every isolation level that the caller may have.
#[test]
fn a_joined_closure_never_reads_what_is_out_of_date() {
    for level in on::LEVELS {
        for wait in [Wait::Forever, Wait::No] {
            let db = db_with(&["a"]);
            let conn = &mut db.connect();
            conn.batch_execute(level).unwrap();
            conn.transaction(|conn| {
                conn.batch_execute("SELECT n FROM notes")?;
                Lock::synchronize(&mut db.connect(), "a", |locked| {
                    locked.conn().batch_execute("UPDATE counter SET n = 1")
                })?;
                let result = Lock::on("a")
                    .join()
                    .wait(wait)
                    .synchronize(conn, |locked| Ok(counter(locked.conn())));
                match result {
                    Ok(n) => assert_eq!(n, 1, "{level}, {wait:?}"),
                    Err(LockError::Serialization(_)) => {}
                    // SQLite cannot tell it from another writer when it may not wait.
                    Err(LockError::Busy(_)) if on::ONE_WRITER && wait == Wait::No => {}
                    Err(error) => panic!("{error}, {level}, {wait:?}"),
                }
                // The caller's transaction goes on.
                conn.batch_execute("SELECT n FROM notes")?;
                if on::ONE_WRITER { Ok(()) } else { note(conn, 1) }
            })
            .unwrap();
        }
    }
}
