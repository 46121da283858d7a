use super::on;
use super::support::{db_with, while_held};
use crate::once::warnings;
use diesel::Connection;
use job_lock::{Lock, LockError, LockState, Wait};
use std::time::Duration;

#[test]
fn list_shows_who_holds_what_and_since_when() {
    let db = db_with(&["a", "b"]);
    let conn = &mut db.connect();
    let names =
        |rows: &[job_lock::LockRow]| -> Vec<String> { rows.iter().map(|row| row.name.clone()).collect() };

    let rows = Lock::list(conn).unwrap();
    assert_eq!(names(&rows), ["a", "b"]);
    assert!(
        rows.iter()
            .all(|row| row.owner.is_none() && row.acquired_at.is_none())
    );
    assert!(rows.iter().all(|row| row.state == on::LISTED_FREE));

    while_held(&db, "b", || {
        let rows = Lock::list(conn).unwrap();
        assert_eq!(rows[0].state, on::LISTED_FREE);
        assert_eq!(rows[1].state, on::LISTED_HELD);
        if on::LISTED_HELD == LockState::Held {
            assert!(
                rows[1]
                    .owner
                    .as_ref()
                    .is_some_and(|owner| owner.contains(on::OWNER_HAS))
            );
            assert!(rows[1].acquired_at.is_some());
        }
    });

    let rows = Lock::list(conn).unwrap();
    assert_eq!(rows[1].state, on::LISTED_FREE);
    assert_eq!(rows[1].token, 1);
    let process = format!("/{}/", std::process::id());
    assert!(
        rows[1]
            .owner
            .as_ref()
            .is_some_and(|owner| owner.contains(&process))
    );
    assert!(rows[1].acquired_at.is_some() && rows[1].expires_at.is_none());
}

#[test]
fn list_in_a_transaction_locks_nothing() {
    let db = db_with(&["a"]);
    db.connect()
        .transaction(|conn| {
            assert_eq!(Lock::list(conn).unwrap().len(), 1);
            Lock::on("a")
                .wait(Wait::No)
                .synchronize(&mut db.connect(), |_| Ok(()))
                .map_err(|error: LockError| diesel::result::Error::from(error))
        })
        .unwrap();
}

#[test]
fn a_lock_that_was_held_too_long_is_logged() {
    warnings::listen();
    let (long, short) = (
        format!("{}-long", on::LOG_NAME),
        format!("{}-short", on::LOG_NAME),
    );
    let db = db_with(&[&long, &short]);
    let conn = &mut db.connect();
    for (name, limit) in [(&long, Duration::ZERO), (&short, Duration::MAX)] {
        Lock::on(name)
            .warn_after(limit)
            .synchronize(conn, |_| Ok::<_, LockError>(()))
            .unwrap();
    }
    assert_eq!((warnings::count(&long), warnings::count(&short)), (1, 0));
}
