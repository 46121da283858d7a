use super::super::suite::support::any;
use super::{Conn, Db};
use diesel::Connection;
use diesel::connection::SimpleConnection;
use diesel::result::Error;
use job_core::{EnqueueError, Job};
use std::thread;

type Enqueue = fn(&mut Conn) -> Result<i64, EnqueueError>;

const WAYS: [Enqueue; 2] = [
    |conn| any().unique("key").enqueue(conn).map(|job| job.id),
    |conn| Job::enqueue_all(conn, [any(), any().unique("key")]).map(|ids| ids[1]),
];

fn prepared() -> (Db, Conn) {
    let db = Db::new();
    db.execute("CREATE TABLE notes (id INT PRIMARY KEY)");
    let mut conn = db.connect();
    conn.batch_execute(
        "SET SESSION TRANSACTION ISOLATION LEVEL REPEATABLE READ; SET SESSION innodb_snapshot_isolation = ON",
    )
    .unwrap();
    (db, conn)
}

/// The server has rolled back the caller's transaction: the caller hears of it, and nothing of it is committed.
fn assert_lost(db: &Db, conn: &mut Conn, ended: Result<(), EnqueueError>, swallowed: bool) {
    match ended {
        Err(EnqueueError::Serialization) if !swallowed => {}
        Err(EnqueueError::Database(Error::BrokenTransactionManager)) if swallowed => {}
        other => panic!("{other:?}"),
    }
    assert_eq!(db.count("SELECT count(*) FROM notes WHERE id = 1"), 0);
    // Nobody takes the connection for a good one.
    assert!(job_db::is_broken(conn));
    let again = any().enqueue(conn);
    assert!(again.is_err(), "{again:?}");
    db.assert_invariants();
}

#[test]
fn a_key_taken_after_the_snapshot_never_commits_half_a_transaction() {
    for enqueue in WAYS {
        for swallowed in [false, true] {
            let (db, mut conn) = prepared();
            let conn = &mut conn;
            let ended = conn.transaction(|conn| {
                // The snapshot is taken; then somebody else takes the key.
                Job::counts(conn).map_err(Error::from)?;
                conn.batch_execute("INSERT INTO notes VALUES (1)")?;
                any().unique("key").enqueue(&mut db.connect())?;
                match enqueue(conn) {
                    Err(EnqueueError::Serialization) if swallowed => Ok(()),
                    done => done.map(drop),
                }
            });
            assert_lost(&db, conn, ended, swallowed);
            assert_eq!(db.count("SELECT count(*) FROM jobs"), 1);
        }
    }
}

#[test]
fn a_deadlock_never_commits_half_a_transaction() {
    for enqueue in WAYS {
        for swallowed in [false, true] {
            let (db, mut conn) = prepared();
            let conn = &mut conn;
            let mut other = db.connect();
            // Who has written less is the victim.
            other
                .batch_execute(
                    "SET SESSION TRANSACTION ISOLATION LEVEL READ COMMITTED;
                     INSERT INTO notes SELECT 10 + seq FROM seq_1_to_100; BEGIN;
                     UPDATE notes SET id = id + 1000; INSERT INTO unique_keys (unique_key, job_id) VALUES ('key', 1)",
                )
                .unwrap();
            let ended = thread::scope(|scope| {
                conn.transaction(|conn| {
                    conn.batch_execute("INSERT INTO notes VALUES (1)")?;
                    scope.spawn(|| {
                        other
                            .batch_execute("DELETE FROM notes WHERE id = 1; ROLLBACK")
                            .unwrap();
                    });
                    job_test::eventually("the other waits", || {
                        db.count(
                            "SELECT count(*) FROM information_schema.processlist
                             WHERE db = DATABASE() AND id <> CONNECTION_ID() AND info LIKE 'DELETE FROM notes%'",
                        ) > 0
                    });
                    match enqueue(conn) {
                        Err(EnqueueError::Serialization) if swallowed => Ok(()),
                        done => done.map(drop),
                    }
                })
            });
            assert_lost(&db, conn, ended, swallowed);
            assert_eq!(db.count("SELECT count(*) FROM jobs"), 0);
        }
    }
}

#[test]
fn a_lock_wait_that_ends_only_a_statement_leaves_the_transaction() {
    let (db, mut conn) = prepared();
    let conn = &mut conn;
    let other = &mut db.connect();
    other
        .batch_execute("BEGIN; INSERT INTO unique_keys (unique_key, job_id) VALUES ('key', 1)")
        .unwrap();
    conn.batch_execute("SET SESSION innodb_lock_wait_timeout = 1")
        .unwrap();
    conn.transaction(|conn| {
        conn.batch_execute("INSERT INTO notes VALUES (1)")?;
        let refused = any().unique("key").enqueue(conn);
        assert!(matches!(refused, Err(EnqueueError::Database(_))), "{refused:?}");
        any().enqueue(conn).map(drop)
    })
    .unwrap();
    other.batch_execute("ROLLBACK").unwrap();
    assert_eq!(db.count("SELECT count(*) FROM notes"), 1);
    assert_eq!(db.count("SELECT count(*) FROM jobs"), 1);
    db.assert_invariants();
}
