use super::support::{db_with, note, notes, while_held};
use super::{Conn, on};
use diesel::Connection;
use diesel::connection::SimpleConnection;
use job_lock::{Lock, LockError, Locked, Wait};
use std::sync::Barrier;
use std::thread;

#[test]
fn the_same_name_on_the_same_connection_runs_inline() {
    let db = db_with(&["a"]);
    Lock::synchronize(&mut db.connect(), "a", |outer| {
        let token = outer.token();
        for wait in [Wait::Forever, Wait::No] {
            let lock = Lock::on("a").wait(wait).create_missing();
            lock.synchronize(outer.conn(), |inner| {
                assert_eq!(inner.token(), token);
                note(inner.conn(), 1)
            })?;
            outer.synchronize("a", |inner| {
                assert_eq!(inner.token(), token);
                note(inner.conn(), 2)
            })?;
        }
        // In a savepoint too.
        outer.conn().transaction(|conn| {
            Lock::synchronize(conn, "a", |inner| {
                assert_eq!(inner.token(), token);
                note(inner.conn(), 3)
            })
        })
    })
    .unwrap();
    assert_eq!(notes(&db), [1, 1, 2, 2, 3]);
    assert_eq!(db.count("SELECT token FROM locks"), 1);
}

#[test]
fn an_error_of_an_inner_closure_undoes_what_it_wrote_and_leaves_the_outer_one() {
    let db = db_with(&["a"]);
    Lock::synchronize(&mut db.connect(), "a", |outer| {
        note(outer.conn(), 1)?;
        let inner = Lock::synchronize(outer.conn(), "a", |inner| {
            note(inner.conn(), 2)?;
            Err::<(), _>(anyhow::anyhow!("no"))
        });
        assert!(inner.is_err());
        note(outer.conn(), 3)
    })
    .unwrap();
    assert_eq!(notes(&db), [1, 3]);
}

#[test]
fn reentrance_goes_with_the_connection_not_with_the_thread() {
    let db = db_with(&["a"]);
    Lock::synchronize(&mut db.connect(), "a", |outer| {
        let other_connection = Lock::on("a")
            .wait(Wait::No)
            .synchronize(&mut db.connect(), |_| Ok::<_, LockError>(()));
        assert!(matches!(other_connection, Err(LockError::Busy(_))));

        let conn = outer.conn();
        let other_thread = thread::scope(|scope| {
            scope
                .spawn(|| Lock::synchronize(conn, "a", |inner| Ok::<_, LockError>(inner.token())))
                .join()
                .unwrap()
        });
        assert_eq!(other_thread.unwrap(), outer.token());
        Ok::<_, LockError>(())
    })
    .unwrap();
}

/// At READ UNCOMMITTED a session of MySQL's reads the holder's row.
#[test]
fn a_holder_elsewhere_in_the_process_is_not_taken_for_oneself() {
    let db = db_with(&["a"]);
    while_held(&db, "a", || {
        for level in on::LEVELS {
            let conn = &mut db.connect();
            conn.batch_execute(level).unwrap();
            conn.transaction(|conn| {
                let alone: Result<(), LockError> = Lock::synchronize(conn, "a", |_| panic!("ran"));
                assert!(matches!(alone, Err(LockError::InTransaction(_))), "{level}");
                let joined: Result<(), LockError> = Lock::on("a")
                    .join()
                    .wait(Wait::No)
                    .synchronize(conn, |_| panic!("ran"));
                assert!(matches!(joined, Err(LockError::Busy(_))), "{level}");
                diesel::QueryResult::Ok(())
            })
            .unwrap();
        }
    });
}

#[test]
fn the_last_holders_row_is_not_taken_for_ones_own() {
    let db = db_with(&["a", "b"]);
    let conn = &mut db.connect();
    Lock::synchronize(conn, "a", |_| Ok::<_, LockError>(())).unwrap();
    Lock::synchronize(conn, "b", |locked| {
        let inner: Result<(), LockError> = Lock::synchronize(locked.conn(), "a", |_| panic!("ran"));
        assert!(matches!(inner, Err(LockError::InTransaction(name)) if name == "a"));
        Ok::<_, LockError>(())
    })
    .unwrap();
}

#[test]
fn a_different_name_nests_and_is_held_until_the_outer_one_ends() {
    let db = db_with(&["a", "b"]);
    Lock::synchronize(&mut db.connect(), "a", |outer| {
        outer.synchronize("b", |inner| {
            assert_eq!((inner.name(), inner.token()), ("b", 1));
            note(inner.conn(), 1)
        })?;
        let free = Lock::on("b")
            .wait(Wait::No)
            .synchronize(&mut db.connect(), |_| Ok::<_, LockError>(()));
        assert!(matches!(free, Err(LockError::Busy(_))));
        diesel::QueryResult::Ok(())
    })
    .unwrap();
    assert_eq!(notes(&db), [1]);
}

#[test]
fn several_names_are_taken_once_each_in_one_order() {
    let db = db_with(&["a", "b", "c"]);
    let conn = &mut db.connect();
    let tokens = |locked: &mut Locked<'_, Conn>| {
        let names: Vec<String> = locked.tokens().iter().map(|(name, _)| name.to_string()).collect();
        Ok::<_, LockError>(names)
    };
    let names = Lock::synchronize_all(conn, ["c", "a", "c", "b"], tokens).unwrap();
    assert_eq!(names, ["a", "b", "c"]);
    assert_eq!(db.bigints("SELECT token FROM locks"), [1, 1, 1]);

    let one_is_missing: Result<(), LockError> = Lock::synchronize_all(conn, ["a", "d"], |_| panic!("ran"));
    assert!(matches!(one_is_missing, Err(LockError::Unknown(name)) if name == "d"));
    let none: Result<(), LockError> = Lock::synchronize_all(conn, [], |_| panic!("ran"));
    assert!(matches!(none, Err(LockError::NoNames)));
    assert_eq!(db.bigints("SELECT token FROM locks"), [1, 1, 1]);
}

#[test]
fn inside_some_of_them_all_of_them_can_be_taken_by_joining() {
    let db = db_with(&["a", "b"]);
    Lock::synchronize(&mut db.connect(), "a", |outer| {
        let both = Lock::on_all(["b", "a"]);
        let unjoined = both.synchronize(outer.conn(), |_| Ok::<_, LockError>(()));
        assert!(matches!(unjoined, Err(LockError::InTransaction(name)) if name == "b"));
        both.join().synchronize(outer.conn(), |inner| {
            assert_eq!(inner.tokens(), [("a", 1), ("b", 1)]);
            Ok::<_, LockError>(())
        })
    })
    .unwrap();
}

#[test]
fn several_names_in_any_order_never_deadlock() {
    let db = db_with(&["a", "b", "c"]);
    thread::scope(|scope| {
        for names in [["a", "b", "c"], ["c", "b", "a"], ["b", "c", "a"]] {
            let db = &db;
            scope.spawn(move || {
                let conn = &mut db.connect();
                for _ in 0..20 {
                    Lock::synchronize_all(conn, names, |_| Ok::<_, LockError>(())).unwrap();
                }
            });
        }
    });
    assert_eq!(db.bigints("SELECT token FROM locks"), [60, 60, 60]);
}

#[test]
fn a_deadlock_is_an_error_never_a_hang() {
    let db = db_with(&["a", "b"]);
    if on::ONE_WRITER {
        // The second thread does not get its first lock, so that it never waits for a second one.
        Lock::synchronize(&mut db.connect(), "a", |outer| {
            while_told_busy(&db, "b");
            outer.synchronize("b", |_| Ok::<_, LockError>(()))
        })
        .unwrap();
        return;
    }
    let both_hold_one = Barrier::new(2);
    let results: Vec<Result<(), LockError>> = thread::scope(|scope| {
        let threads: Vec<_> = [("a", "b"), ("b", "a")]
            .into_iter()
            .map(|(first, second)| {
                let (db, both_hold_one) = (&db, &both_hold_one);
                scope.spawn(move || {
                    Lock::synchronize(&mut db.connect(), first, |outer| {
                        both_hold_one.wait();
                        outer.synchronize(second, |_| Ok(()))
                    })
                })
            })
            .collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).collect()
    });
    let deadlocks = results
        .iter()
        .filter(|result| matches!(result, Err(LockError::Deadlock(_))))
        .count();
    assert_eq!(
        (deadlocks, results.iter().filter(|result| result.is_ok()).count()),
        (1, 1)
    );
}

fn while_told_busy(db: &super::Db, name: &str) {
    let result = Lock::on(name)
        .wait(Wait::No)
        .synchronize(&mut db.connect(), |_| Ok::<_, LockError>(()));
    assert!(matches!(result, Err(LockError::Busy(_))));
}
