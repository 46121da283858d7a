use super::on;
use super::support::{db_with, note, notes, while_held};
use diesel::connection::SimpleConnection;
use job_lock::{Lock, LockError, Wait};
use std::sync::Barrier;
use std::sync::mpsc::channel;
use std::thread;
use std::time::Duration;

const BRIEF: [Wait; 4] = [
    Wait::No,
    Wait::AtMost(Duration::ZERO),
    Wait::AtMost(Duration::from_micros(1)),
    Wait::AtMost(Duration::from_millis(150)),
];
const LONG: Wait = Wait::AtMost(Duration::from_secs(600));

#[test]
fn who_waits_briefly_is_told_busy_while_another_holds_the_lock() {
    let db = db_with(&["a"]);
    let conn = &mut db.connect();
    // The holder is there until all of them have had their answer.
    while_held(&db, "a", || {
        for wait in BRIEF {
            let result: Result<(), LockError> = Lock::on("a").wait(wait).synchronize(conn, |_| panic!("ran"));
            assert!(
                matches!(result, Err(LockError::Busy(name)) if name == "a"),
                "{wait:?}"
            );
        }
    });
    for wait in BRIEF {
        Lock::on("a")
            .wait(wait)
            .synchronize(conn, |_| Ok::<_, LockError>(()))
            .unwrap();
    }
}

#[test]
fn who_waits_long_gets_the_lock_after_the_holder() {
    for wait in [Wait::Forever, LONG, Wait::AtMost(Duration::MAX)] {
        let db = db_with(&["a"]);
        let (asked, is_asked) = channel();
        thread::scope(|scope| {
            Lock::synchronize(&mut db.connect(), "a", |locked| {
                let db = &db;
                scope.spawn(move || {
                    let conn = &mut db.connect();
                    asked.send(()).unwrap();
                    Lock::on("a")
                        .wait(wait)
                        .synchronize(conn, |locked| {
                            let n = super::support::number(locked.conn(), "SELECT count(*) FROM notes");
                            note(locked.conn(), n + 1)
                        })
                        .unwrap();
                });
                is_asked.recv().unwrap();
                note(locked.conn(), 1)
            })
            .unwrap();
        });
        assert_eq!(notes(&db), [1, 2], "{wait:?}");
    }
}

#[test]
fn what_is_missing_is_not_called_busy() {
    let db = db_with(&["a"]);
    while_held(&db, "a", || {
        for wait in [Wait::No, Wait::AtMost(Duration::from_millis(20))] {
            let result = Lock::on("b")
                .wait(wait)
                .synchronize(&mut db.connect(), |_| Ok::<_, LockError>(()));
            match result {
                Err(LockError::Unknown(_)) => {}
                // There every name excludes every other.
                Err(LockError::Busy(_)) if on::ONE_WRITER => {}
                other => panic!("{other:?}"),
            }
        }
    });
}

#[test]
fn other_names_can_be_held_at_once_but_for_where_one_writer_excludes_all() {
    let db = db_with(&["a", "b"]);
    if on::ONE_WRITER {
        while_held(&db, "a", || {
            let result = Lock::on("b")
                .wait(Wait::No)
                .synchronize(&mut db.connect(), |_| Ok::<_, LockError>(()));
            assert!(matches!(result, Err(LockError::Busy(_))));
        });
        return;
    }
    let both_inside = Barrier::new(2);
    thread::scope(|scope| {
        for name in ["a", "b"] {
            let (db, both_inside) = (&db, &both_inside);
            scope.spawn(move || {
                Lock::synchronize(&mut db.connect(), name, |_| {
                    both_inside.wait();
                    Ok::<_, LockError>(())
                })
                .unwrap();
            });
        }
    });
}

#[test]
fn the_sessions_own_limit_on_waiting_is_as_it_was() {
    let db = db_with(&["a"]);
    let conn = &mut db.connect();
    on::set_wait_limit(conn, 7);
    let free = |conn: &mut super::Conn, wait| {
        let lock = Lock::on("a").wait(wait);
        lock.synchronize(conn, |locked| {
            assert_eq!(on::wait_limit(locked.conn()), 7);
            Ok::<_, LockError>(())
        })
    };
    for wait in [Wait::Forever, LONG, Wait::No] {
        free(conn, wait).unwrap();
        assert_eq!(on::wait_limit(conn), 7);
    }
    while_held(&db, "a", || {
        assert!(matches!(free(conn, Wait::No), Err(LockError::Busy(_))));
        assert_eq!(on::wait_limit(conn), 7);
    });
}

#[test]
fn a_joined_lock_waits_as_told() {
    use diesel::Connection;
    let db = db_with(&["a"]);
    while_held(&db, "a", || {
        for wait in BRIEF {
            db.connect()
                .transaction(|conn| {
                    let result: Result<(), LockError> = Lock::on("a")
                        .join()
                        .wait(wait)
                        .synchronize(conn, |_| panic!("ran"));
                    assert!(matches!(result, Err(LockError::Busy(_))), "{wait:?}");
                    diesel::QueryResult::Ok(())
                })
                .unwrap();
        }
    });
    let (asked, is_asked) = channel();
    thread::scope(|scope| {
        Lock::synchronize(&mut db.connect(), "a", |locked| {
            let db = &db;
            scope.spawn(move || {
                db.connect()
                    .transaction(|conn| {
                        asked.send(()).unwrap();
                        Lock::on("a")
                            .join()
                            .synchronize(conn, |locked| note(locked.conn(), 2))
                    })
                    .unwrap();
            });
            is_asked.recv().unwrap();
            note(locked.conn(), 1)
        })
        .unwrap();
    });
    assert_eq!(notes(&db), [1, 2]);
}

/// As by an administrator, which is no limit on waiting.
#[test]
fn a_wait_that_is_cancelled_is_an_error_and_not_busy() {
    let Some((cancel, waits)) = on::CANCEL else {
        return; // SQLite has no server that could be told to.
    };
    let db = db_with(&["a"]);
    let waiter = &mut db.connect();
    let id = on::session_id(waiter).to_string();
    while_held(&db, "a", || {
        thread::scope(|scope| {
            let waiting = scope.spawn(|| Lock::synchronize(waiter, "a", |_| Ok::<_, LockError>(())));
            job_test::eventually("it waits", || db.count(&waits.replace("ID", &id)) > 0);
            db.execute(&cancel.replace("ID", &id));
            let result = waiting.join().unwrap();
            assert!(matches!(result, Err(LockError::Database(_))), "{result:?}");
        });
    });
    // The session is as good as before.
    Lock::synchronize(waiter, "a", |_| Ok::<_, LockError>(())).unwrap();
}

#[test]
fn those_who_wait_are_served_in_the_order_in_which_they_came() {
    let Some((_, waits)) = on::CANCEL.filter(|_| on::SERVES_IN_ORDER) else {
        return;
    };
    for level in on::LEVELS {
        let db = db_with(&["a"]);
        let waiters = while_held(&db, "a", || {
            (1..=8)
                .map(|n| {
                    let mut conn = db.connect();
                    conn.batch_execute(level).unwrap();
                    let waits = waits.replace("ID", &on::session_id(&mut conn).to_string());
                    let waiter = thread::spawn(move || {
                        Lock::synchronize(&mut conn, "a", |locked| note(locked.conn(), n))
                    });
                    job_test::eventually("it waits", || db.count(&waits) > 0);
                    waiter
                })
                .collect::<Vec<_>>()
        });
        for waiter in waiters {
            waiter.join().unwrap().unwrap();
        }
        // They lie in the table as they came.
        assert_eq!(
            db.bigints("SELECT n FROM notes"),
            (1..=8).collect::<Vec<_>>(),
            "{level}"
        );
    }
}

/// Of two apps in two schemas of one PostgreSQL, or two databases of one MariaDB.
#[test]
fn the_same_name_in_another_table_is_another_lock() {
    let (one, other) = (db_with(&["a"]), db_with(&["a"]));
    while_held(&one, "a", || {
        Lock::synchronize(&mut other.connect(), "a", |_| Ok::<_, LockError>(())).unwrap();
    });
}
