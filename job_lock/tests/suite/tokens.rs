use super::on;
use super::support::{counter, db_with};
use diesel::connection::SimpleConnection;
use job_lock::{Lock, LockError};

fn token(conn: &mut super::Conn) -> i64 {
    Lock::synchronize(conn, "a", |locked| Ok::<_, LockError>(locked.token())).unwrap()
}

#[test]
fn each_holder_gets_a_higher_token_than_the_one_before() {
    let db = db_with(&["a"]);
    let (one, other) = (&mut db.connect(), &mut db.connect());
    assert_eq!([token(one), token(other), token(other), token(one)], [1, 2, 3, 4]);
}

#[test]
fn the_token_stands_in_the_row() {
    let db = db_with(&["a", "b"]);
    Lock::synchronize(&mut db.connect(), "a", |locked| {
        let row = format!("SELECT token FROM locks WHERE name = '{}'", locked.name());
        assert_eq!(super::support::number(locked.conn(), &row), locked.token());
        Ok::<_, LockError>(())
    })
    .unwrap();
    assert_eq!(db.bigints("SELECT token FROM locks ORDER BY name"), [1, 0]);
}

#[test]
fn the_locks_own_transaction_is_read_committed_whatever_the_session_says() {
    // With one writer nothing changes during the closure.
    if on::ONE_WRITER {
        return;
    }
    for level in on::LEVELS {
        let db = db_with(&["a"]);
        let conn = &mut db.connect();
        conn.batch_execute(level).unwrap();
        let before = on::session_level(conn);
        Lock::synchronize(conn, "a", |locked| {
            assert_eq!(counter(locked.conn()), 0);
            db.execute("UPDATE counter SET n = 1");
            assert_eq!(counter(locked.conn()), 1, "{level}");
            Ok::<_, LockError>(())
        })
        .unwrap();
        assert_eq!(on::session_level(conn), before);
    }
}
