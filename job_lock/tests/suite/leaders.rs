use super::leases::{LONG, expire, manager};
use super::support::{db_with, note, notes};
use job_lock::{Leader, Lock, LockError, Wait};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::channel;
use std::thread;
use std::time::Duration;

const SHORT: Duration = Duration::from_millis(200);

#[test]
fn one_leads_and_another_after_it_has_ended() {
    let db = db_with(&[]);
    let stop = AtomicBool::new(false);
    let events = Mutex::new(Vec::new());
    thread::scope(|scope| {
        for _ in 0..3 {
            scope.spawn(|| {
                Leader::new(&manager(&db), "a", LONG.min(Duration::from_secs(2)))
                    .on_gain(|token| events.lock().unwrap().push((token, "gain")))
                    .on_loss(|token| events.lock().unwrap().push((token, "loss")))
                    .run(
                        || stop.load(Ordering::SeqCst),
                        |term| {
                            term.transaction(|conn| Ok::<_, LockError>(note(conn, term.token())?))?;
                            if term.token() == 4 {
                                stop.store(true, Ordering::SeqCst);
                            }
                            Ok::<_, LockError>(())
                        },
                    )
                    .unwrap();
            });
        }
    });
    let events = events.into_inner().unwrap();
    let expected: Vec<_> = (1..=events.len() as i64 / 2)
        .flat_map(|token| [(token, "gain"), (token, "loss")])
        .collect();
    assert_eq!(events, expected);
    assert!(notes(&db).starts_with(&[1, 2, 3, 4]));
}

#[test]
fn a_deposed_leader_is_told_at_once_and_its_fenced_transactions_fail() {
    let db = db_with(&["a"]);
    let stop = AtomicBool::new(false);
    let (lost, is_lost) = channel();
    Leader::new(&manager(&db), "a", Duration::from_secs(5))
        .renew_every(Duration::from_millis(20))
        .on_loss(move |token| lost.send(token).unwrap())
        .run(
            || stop.load(Ordering::SeqCst),
            |term| {
                if !notes(&db).is_empty() {
                    stop.store(true, Ordering::SeqCst);
                    return Ok(());
                }
                // Another has it, and this one learns of it while its closure still runs.
                db.execute("UPDATE locks SET token = token + 1, expires_at = acquired_at");
                assert_eq!(is_lost.recv().unwrap(), term.token());
                assert!(term.is_lost() && term.is_over() && !term.pause(LONG));
                let result = term.transaction(|_| -> Result<(), LockError> { panic!("ran") });
                assert!(matches!(result, Err(LockError::LeaseLost(_))));
                note(&mut db.connect(), 1)?;
                // That error is the loss's, and the candidacy goes on.
                result
            },
        )
        .unwrap();
}

#[test]
fn on_doubt_a_leader_concedes_for_good() {
    let db = db_with(&["a"]);
    let result: Result<(), LockError> = Leader::new(&manager(&db), "a", SHORT).renew_every(SHORT / 2).run(
        || !notes(&db).is_empty(),
        |term| {
            // A transaction that holds the row holds up the renewal, and so the leader is in doubt.
            super::support::while_row_locked(&db, || {
                job_test::eventually("it is in doubt", || term.is_lost());
            });
            // The database would renew it now.
            assert!(term.is_lost());
            note(&mut db.connect(), 1)?;
            Ok(())
        },
    );
    result.unwrap();
}

#[test]
fn an_error_of_the_closure_ends_the_candidacy_and_releases_the_lease() {
    let db = db_with(&["a"]);
    let leader = Leader::new(&manager(&db), "a", LONG);
    let result: anyhow::Result<()> = leader.run(|| false, |_| anyhow::bail!("no"));
    assert_eq!(result.unwrap_err().to_string(), "no");
    let free = Lock::lease_on("a", LONG).wait(Wait::No);
    free.hold(&manager(&db), |_| Ok::<_, LockError>(())).unwrap();
    let result: Result<(), LockError> = Leader::new(&manager(&db), "", LONG).run(|| false, |_| Ok(()));
    assert!(matches!(result, Err(LockError::InvalidName { .. })));
    expire(&db);
}

/// Not the text of the scope that its thread was in.
#[test]
fn a_panic_of_a_callback_is_the_candidates_and_the_lease_is_given_back() {
    for (which, gains) in [("gain", true), ("loss", false)] {
        let db = db_with(&["a"]);
        let manager = manager(&db);
        let leader = Leader::new(&manager, "a", LONG)
            .on_gain(move |_| assert!(!gains, "the callback for the {which}"))
            .on_loss(move |_| assert!(gains, "the callback for the {which}"));
        let panic = catch_unwind(AssertUnwindSafe(|| {
            leader.run(|| false, |_| Ok::<_, LockError>(()))
        }));
        let panic = panic.unwrap_err();
        let text = panic.downcast_ref::<String>().unwrap();
        assert_eq!(*text, format!("the callback for the {which}"));
        let free = Lock::lease_on("a", LONG).wait(Wait::No);
        free.hold(&manager, |_| Ok::<_, LockError>(())).unwrap();
    }
}

#[test]
fn a_candidate_stops_when_told() {
    let db = db_with(&["a"]);
    Lock::lease(&manager(&db), "a", LONG, |_| {
        let looks = std::sync::atomic::AtomicU32::new(0);
        let stop = || looks.fetch_add(1, Ordering::SeqCst) > 3;
        Leader::new(&manager(&db), "a", LONG).run(stop, |_| Err::<(), _>(LockError::NoNames))
    })
    .unwrap();
}
