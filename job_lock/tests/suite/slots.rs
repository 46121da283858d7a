use super::leases::manager;
use super::on;
use super::support::{db_with, note, notes};
use job_lock::{LockError, Slot};
use std::sync::Barrier;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::thread;

/// Namespaces are the database's on PostgreSQL, and there tests share one.
pub(super) fn namespace(db: &super::Db) -> String {
    let name: String = db.url().chars().rev().take(60).collect();
    format!("numbers-{name}")
}

#[test]
fn n_claimants_have_n_numbers_and_one_more_gets_none() {
    let db = db_with(&[]);
    let (manager, space) = (manager(&db), namespace(&db));
    let mut slots: Vec<_> = (0..3)
        .map(|_| Slot::claim(&manager, &space, 3).unwrap().unwrap())
        .collect();
    assert_eq!(slots.iter().map(Slot::number).collect::<Vec<_>>(), [0, 1, 2]);
    assert!(Slot::claim(&manager, &space, 3).unwrap().is_none());
    // The first that is free.
    drop(slots.remove(1));
    let again = Slot::claim(&manager, &space, 3).unwrap().unwrap();
    assert_eq!((again.number(), again.of()), (1, 3));
}

/// A flaw of the second idea: the key was everybody's on that database.
#[test]
fn flaw_2_namespaces_do_not_collide() {
    let db = db_with(&[]);
    let manager = manager(&db);
    let spaces = [
        "x",
        "y",
        "X",
        "x ",
        "x/1",
        "x/0",
        "x_0",
        "ä",
        "a\u{308}",
        "'",
        "\\",
        "%",
        "?",
        "日",
        "🦀",
        "🦑",
        "\u{10FFFF}",
    ]
    .map(|suffix| format!("{}{suffix}", namespace(&db)));
    let slots: Vec<_> = spaces
        .iter()
        .map(|space| Slot::claim(&manager, space, 1).unwrap().unwrap())
        .collect();
    assert!(slots.iter().all(|slot| slot.number() == 0));
    for space in &spaces {
        assert!(Slot::claim(&manager, space, 1).unwrap().is_none());
    }
}

#[test]
fn more_contenders_than_slots_never_share_a_number() {
    const SLOTS: u32 = 3;
    let db = db_with(&[]);
    let (manager, space) = (manager(&db), namespace(&db));
    let taken: [AtomicBool; SLOTS as usize] = Default::default();
    let claimed = AtomicU32::new(0);
    let barrier = Barrier::new(8);
    thread::scope(|scope| {
        for _ in 0..8 {
            scope.spawn(|| {
                barrier.wait();
                for _ in 0..4 {
                    let Some(mut slot) = Slot::claim(&manager, &space, SLOTS).unwrap() else {
                        continue;
                    };
                    let is_taken = &taken[slot.number() as usize];
                    assert!(!is_taken.swap(true, Ordering::SeqCst), "{slot:?}");
                    slot.transaction(|conn| Ok::<_, LockError>(note(conn, 1)?))
                        .unwrap();
                    claimed.fetch_add(1, Ordering::SeqCst);
                    assert!(is_taken.swap(false, Ordering::SeqCst), "{slot:?}");
                }
            });
        }
    });
    // Whoever finds one free has it, and none is left taken.
    let claimed = claimed.into_inner();
    assert!(claimed >= SLOTS, "{claimed}");
    assert_eq!(notes(&db).len(), claimed as usize);
    let all: Vec<_> = (0..SLOTS)
        .map(|_| Slot::claim(&manager, &space, SLOTS).unwrap().unwrap())
        .collect();
    assert!(Slot::claim(&manager, &space, SLOTS).unwrap().is_none());
    drop(all);
}

#[test]
fn slots_that_cannot_be_are_refused() {
    let db = db_with(&[]);
    let long = "x".repeat(201);
    for (space, of) in [("", 1), ("a\0", 1), (long.as_str(), 1), ("a", 0), ("a", 65_537)] {
        let result = Slot::claim(&manager(&db), space, of);
        assert!(matches!(result, Err(LockError::InvalidSlots { .. })));
    }
    let longest = "ä".repeat(100);
    Slot::claim(&manager(&db), &longest, 65_536).unwrap().unwrap();
}

#[test]
fn a_slots_transaction_commits_and_rolls_back() {
    let db = db_with(&[]);
    let mut slot = Slot::claim(&manager(&db), &namespace(&db), 2).unwrap().unwrap();
    slot.check().unwrap();
    slot.transaction(|conn| Ok::<_, LockError>(note(conn, 1)?))
        .unwrap();
    let result = slot.transaction(|conn| {
        note(conn, 2)?;
        anyhow::bail!("no");
        #[allow(unreachable_code)]
        Ok(())
    });
    assert_eq!(result.unwrap_err().to_string(), "no");
    let ended = slot.transaction(|conn| {
        use diesel::connection::SimpleConnection;
        note(conn, 3)?;
        conn.batch_execute("ROLLBACK")?;
        Ok::<_, LockError>(())
    });
    assert!(matches!(ended, Err(LockError::Lost(_))), "{ended:?}");
    slot.transaction(|conn| Ok::<_, LockError>(note(conn, 4)?))
        .unwrap();
    slot.check().unwrap();
    assert_eq!(notes(&db), [1, 4]);
}

/// A flaw of the second idea: the lock goes with the session, silently, while the worker goes on.
#[test]
fn flaw_2_a_lost_session_is_noticed_and_its_fenced_transactions_fail() {
    let Some(kill) = on::KILL else { return };
    let db = db_with(&[]);
    let (manager, space) = (manager(&db), namespace(&db));
    let mut slots: Vec<_> = (0..2)
        .map(|_| Slot::claim(&manager, &space, 2).unwrap().unwrap())
        .collect();
    for slot in &mut slots {
        let session = slot
            .transaction(|conn| Ok::<_, LockError>(on::session_id(conn)))
            .unwrap();
        db.execute(&kill.replace("ID", &session.to_string()));
    }
    let (mut one, mut two) = (slots.remove(0), slots.remove(0));
    assert!(matches!(one.check(), Err(LockError::SlotLost { number: 0, .. })));
    for slot in [&mut one, &mut two] {
        let result = slot.transaction(|_| -> Result<(), LockError> { panic!("ran") });
        assert!(matches!(result, Err(LockError::SlotLost { .. })), "{result:?}");
        assert!(slot.check().is_err());
    }
    // Both are free again while the losers live.
    let next: Vec<_> = (0..2)
        .map(|_| Slot::claim(&manager, &space, 2).unwrap().unwrap())
        .collect();
    drop((one, two));
    assert!(Slot::claim(&manager, &space, 2).unwrap().is_none());
    drop(next);
}

/// As when somebody runs DISCARD ALL.
#[test]
fn a_lock_that_somebody_frees_in_the_session_is_noticed() {
    let Some(free_all) = on::FREE_ALL else { return };
    let db = db_with(&[]);
    let mut slot = Slot::claim(&manager(&db), &namespace(&db), 1).unwrap().unwrap();
    slot.transaction(|conn| {
        use diesel::prelude::*;
        diesel::sql_query(free_all).execute(conn).map(|_| ())?;
        Ok::<_, LockError>(())
    })
    .unwrap();
    let result = slot.transaction(|_| -> Result<(), LockError> { panic!("ran") });
    assert!(matches!(result, Err(LockError::SlotLost { .. })));
}
