//! Transactions that end before the closure does, behind the library's back: never an `Ok`, and the error says what is so.

use super::leases::{LONG, manager};
use super::on::ENDINGS;
use super::slots::namespace;
use super::support::{db_with, note, notes};
use super::{Conn, Db};
use diesel::Connection;
use diesel::connection::SimpleConnection;
use job_lock::{Lock, LockError, Slot, Wait};

/// Writes 1, ends the transaction by `ending`, and writes 2.
fn write_end_write(conn: &mut Conn, ending: &str) -> Result<(), LockError> {
    note(conn, 1)?;
    // An error that the closure swallows.
    let _ = conn.batch_execute(ending);
    note(conn, 2)?;
    Ok(())
}

/// What is there then: 1 where the ending commits, and 2 where no new transaction was begun, which is rolled back.
fn assert_told(db: &Db, ending: &str, result: &Result<(), LockError>) {
    let Err(error @ LockError::Lost(_)) = result else {
        panic!("{result:?} after {ending}");
    };
    for told in ["before a COMMIT or DDL", "before a ROLLBACK", "afterwards"] {
        assert!(error.to_string().contains(told), "{error}");
    }
    let commits = !ending.contains("ROLLBACK");
    let begins = ending.ends_with("BEGIN");
    let mut left = Vec::new();
    left.extend(commits.then_some(1));
    left.extend((!begins).then_some(2));
    assert_eq!(notes(db), left, "after {ending}");
}

#[test]
fn synchronize_notices_that_its_transaction_was_ended() {
    for ending in ENDINGS {
        for wait in [Wait::Forever, Wait::No] {
            let db = db_with(&["a", "b"]);
            let conn = &mut db.connect();
            let result = Lock::on_all(["a", "b"])
                .wait(wait)
                .synchronize(conn, |locked| write_end_write(locked.conn(), ending));
            assert_told(&db, ending, &result);
            // The connection and the lock are good again.
            Lock::synchronize(conn, "a", |locked| note(locked.conn(), 3)).unwrap();
            assert_eq!(notes(&db).last(), Some(&3));
        }
    }
}

#[test]
fn a_joined_synchronize_notices_it_too_and_the_callers_transaction_is_no_success() {
    for ending in ENDINGS {
        let db = db_with(&["a"]);
        let mut told = None;
        let outer = db.connect().transaction(|conn| {
            note(conn, 0)?;
            let lock = Lock::on("a").join();
            told = Some(lock.synchronize(conn, |locked| write_end_write(locked.conn(), ending)));
            diesel::QueryResult::Ok(())
        });
        assert!(
            matches!(told, Some(Err(LockError::Lost(_)))),
            "{told:?} after {ending}"
        );
        assert!(outer.is_err(), "after {ending}");
    }
}

#[test]
fn what_an_inner_closure_ends_is_over_for_the_outer_one_too() {
    for ending in ENDINGS {
        for name in ["a", "b"] {
            let db = db_with(&["a", "b"]);
            let result = Lock::synchronize(&mut db.connect(), "a", |outer| {
                let inner = outer.synchronize(name, |inner| write_end_write(inner.conn(), ending));
                assert!(
                    matches!(inner, Err(LockError::Lost(_))),
                    "{inner:?} after {ending}"
                );
                Ok::<_, LockError>(())
            });
            assert!(
                matches!(result, Err(LockError::Lost(_))),
                "{result:?} after {ending}"
            );
        }
    }
}

#[test]
fn a_fenced_transaction_of_a_lease_notices_that_it_was_ended() {
    for ending in ENDINGS {
        let db = db_with(&["a"]);
        Lock::lease(&manager(&db), "a", LONG, |lease| {
            let result = lease.transaction(|conn| write_end_write(conn, ending));
            assert_told(&db, ending, &result);
            // The lease is as good as before.
            lease.transaction(|conn| Ok::<_, LockError>(note(conn, 3)?))
        })
        .unwrap();
        assert_eq!(notes(&db).last(), Some(&3));
    }
}

#[test]
fn a_transaction_of_a_slot_notices_that_it_was_ended() {
    for ending in ENDINGS {
        let db = db_with(&[]);
        let mut slot = Slot::claim(&manager(&db), &namespace(&db), 1).unwrap().unwrap();
        let result = slot.transaction(|conn| write_end_write(conn, ending));
        assert_told(&db, ending, &result);
        assert!(matches!(result, Err(LockError::Lost(name)) if name == namespace(&db)));
        slot.transaction(|conn| Ok::<_, LockError>(note(conn, 3)?))
            .unwrap();
        assert_eq!(notes(&db).last(), Some(&3));
    }
}

/// What the closure has committed by hand is everybody's to see, and its owner still has a closure that runs.
#[test]
fn a_commit_by_hand_lets_no_other_transaction_of_the_process_in() {
    let db = db_with(&["a"]);
    let result = Lock::synchronize(&mut db.connect(), "a", |first| {
        first.conn().batch_execute("COMMIT")?;
        for has_taken_one in [false, true] {
            let other = &mut db.connect();
            if has_taken_one {
                Lock::on("b")
                    .create_missing()
                    .synchronize(other, |_| Ok::<_, LockError>(()))?;
            }
            let unasked: Result<(), LockError> =
                other.transaction(|other| Lock::synchronize(other, "a", |_| panic!("ran")));
            assert!(matches!(unasked, Err(LockError::InTransaction(_))), "{unasked:?}");
        }
        let joined = db.connect().transaction(|other| {
            Lock::on("a").join().wait(Wait::No).synchronize(other, |second| {
                // And that one holds it.
                let again = Lock::synchronize(second.conn(), "a", |again| Ok::<_, LockError>(again.token()))?;
                assert_eq!(again, second.token());
                Ok::<_, LockError>(again)
            })
        });
        assert_eq!(joined.unwrap(), first.token() + 1);
        Ok::<_, LockError>(())
    });
    assert!(matches!(result, Err(LockError::Lost(_))), "{result:?}");
}
