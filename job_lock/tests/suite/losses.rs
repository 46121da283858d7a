//! Slots that are lost while their holders do nothing.

use super::leases::{Manager, manager};
use super::slots::namespace;
use super::support::{db_with, note, notes};
use super::{Conn, Db, on};
use diesel::prelude::*;
use diesel::r2d2::ConnectionManager;
use job_lock::{LockError, Slot};
use job_test::eventually;
use job_test::server::Tap;
use std::sync::Arc;
use std::time::Duration;

const OFTEN: Duration = Duration::from_millis(20);

fn claim(manager: &Manager, space: &str, heartbeat: Duration) -> Option<Slot<Manager>> {
    Slot::on(manager, space, 1).heartbeat(heartbeat).claim().unwrap()
}

/// Ends the session, or on SQLite the lease.
fn take_away(db: &Db, slot: &mut Slot<Manager>) {
    let Some(kill) = on::KILL else {
        return db.execute("DELETE FROM locks");
    };
    let session = slot
        .transaction(|conn| Ok::<_, LockError>(on::session_id(conn)))
        .unwrap();
    db.execute(&kill.replace("ID", &session.to_string()));
}

fn assert_lost_for_good(slot: &mut Slot<Manager>) {
    eventually("the slot knows by itself", || slot.is_lost());
    let result = slot.transaction(|_| -> Result<(), LockError> { panic!("ran") });
    assert!(
        matches!(result, Err(LockError::SlotLost { number: 0, .. })),
        "{result:?}"
    );
    let checked = slot.check();
    assert!(
        matches!(checked, Err(LockError::SlotLost { number: 0, .. })),
        "{checked:?}"
    );
    assert!(slot.is_lost());
}

#[test]
fn a_slot_that_is_lost_knows_it_without_a_call_and_another_has_the_number() {
    let db = db_with(&[]);
    let (manager, space) = (manager(&db), namespace(&db));
    let mut slot = claim(&manager, &space, OFTEN).unwrap();
    assert!(!slot.is_lost());
    take_away(&db, &mut slot);
    assert_lost_for_good(&mut slot);
    let mut next = Slot::claim(&manager, &space, 1).unwrap().unwrap();
    assert_lost_for_good(&mut slot);
    drop(slot);
    next.transaction(|conn| Ok::<_, LockError>(note(conn, 1)?))
        .unwrap();
    next.check().unwrap();
    assert!(!next.is_lost());
}

/// As when somebody runs DISCARD ALL: the session lives.
#[test]
fn a_lock_that_was_freed_in_the_session_is_known_to_be_lost() {
    let Some(free_all) = on::FREE_ALL else { return };
    let db = db_with(&[]);
    let mut slot = claim(&manager(&db), &namespace(&db), OFTEN).unwrap();
    slot.transaction(|conn| {
        diesel::sql_query(free_all).execute(conn).map(|_| ())?;
        Ok::<_, LockError>(())
    })
    .unwrap();
    assert_lost_for_good(&mut slot);
}

/// The network swallows everything, in the middle of a question.
#[test]
fn a_slot_whose_connection_hangs_is_lost_and_can_be_dropped() {
    if on::KILL.is_none() {
        return; // SQLite has no network.
    }
    let db = db_with(&[]);
    let tap = Tap::start(db.url());
    let tapped = Arc::new(ConnectionManager::<Conn>::new(tap.url(db.url())));
    let space = namespace(&db);
    let mut slot = claim(&tapped, &space, OFTEN).unwrap();
    tap.swallow(true);
    assert_lost_for_good(&mut slot);
    // This returns, although its thread cannot be ended.
    drop(slot);
}

#[test]
fn a_dropped_slot_waits_for_no_heartbeat() {
    let db = db_with(&[]);
    let (manager, space) = (manager(&db), namespace(&db));
    for _ in 0..2 {
        let slot = claim(&manager, &space, Duration::MAX).expect("it is free");
        drop(slot);
    }
}

#[test]
fn a_heart_stands_in_nobodys_way() {
    let db = db_with(&[]);
    let mut slot = claim(&manager(&db), &namespace(&db), Duration::ZERO).unwrap();
    for n in 0..50 {
        slot.transaction(|conn| Ok::<_, LockError>(note(conn, n)?))
            .unwrap();
        slot.check().unwrap();
    }
    let panicked = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
        slot.transaction(|_| -> Result<(), LockError> { panic!("as planned") })
    }));
    assert!(panicked.is_err());
    slot.transaction(|conn| Ok::<_, LockError>(note(conn, 50)?))
        .unwrap();
    assert!(!slot.is_lost());
    assert_eq!(notes(&db), (0..=50).collect::<Vec<_>>());
}
