use super::on;
use super::support::{db_with, note, notes};
use diesel::Connection;
use diesel::connection::{SimpleConnection, TransactionManager};
use job_lock::{Lock, LockError};

#[test]
fn an_error_at_commit_is_an_error() {
    let db = db_with(&["a"]);
    let conn = &mut db.connect();
    on::prepare_to_break_a_commit(&db, conn);
    let result = Lock::synchronize(conn, "a", |locked| {
        note(locked.conn(), 1)?;
        on::break_the_commit(&db, locked.conn());
        Ok::<_, LockError>("never to be seen")
    });
    assert!(matches!(result, Err(LockError::Database(_))), "{result:?}");
    assert!(notes(&db).is_empty());
    assert_eq!(db.count("SELECT token FROM locks"), 0);
}

#[test]
fn a_closure_that_ends_the_transaction_has_lost_the_lock() {
    let db = db_with(&["a"]);
    let conn = &mut db.connect();
    let result = Lock::synchronize(conn, "a", |locked| {
        note(locked.conn(), 1)?;
        locked.conn().batch_execute("ROLLBACK")?;
        Ok::<_, diesel::result::Error>(())
    });
    let diesel::result::Error::QueryBuilderError(error) = result.unwrap_err() else {
        panic!("another error");
    };
    assert!(matches!(error.downcast_ref(), Some(LockError::Lost(name)) if name == "a"));
    assert!(notes(&db).is_empty());
}

#[test]
fn a_closure_that_leaves_a_savepoint_open_has_lost_the_lock() {
    let db = db_with(&["a"]);
    let conn = &mut db.connect();
    let result = Lock::synchronize(conn, "a", |locked| {
        type Manager = <super::Conn as Connection>::TransactionManager;
        Manager::begin_transaction(locked.conn())?;
        Ok::<_, LockError>(())
    });
    assert!(matches!(result, Err(LockError::Lost(_))));
    Lock::synchronize(conn, "a", |locked| note(locked.conn(), 1)).unwrap();
    assert_eq!(notes(&db), [1]);
}
