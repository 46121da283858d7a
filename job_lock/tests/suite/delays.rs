//! Renewals that come too late, and clocks that disagree.

use super::faults::BRIEF;
use super::leases::{LONG, Manager, expire, manager};
use super::support::{db_with, note, notes, while_row_locked};
use super::{Conn, on};
use diesel::Connection;
use diesel::connection::{InstrumentationEvent, SimpleConnection};
use job_lock::{Connect, Lock, LockError, Wait};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, channel};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

/// The renewal stands in a queue, or does not come through to the file.
#[test]
fn a_holder_whose_renewal_is_held_up_past_its_time_may_not_act() {
    let db = db_with(&["a"]);
    Lock::lease_on("a", BRIEF)
        .renew_every(BRIEF / 10)
        .hold(&manager(&db), |lease| {
            while_row_locked(&db, || {
                job_test::eventually("trust ends", || lease.is_lost());
                assert!(matches!(lease.check(), Err(LockError::LeaseLost(_))));
            });
            // Nobody else has had it, and so it is this one's again.
            job_test::eventually("the renewal comes through", || lease.check().is_ok());
            lease.transaction(|conn| Ok::<_, LockError>(note(conn, 1)?))
        })
        .unwrap();
    assert_eq!(notes(&db), [1]);
}

/// The renewal waits for the very transaction that makes it another's.
#[test]
fn a_renewal_that_comes_after_a_successor_renews_nothing() {
    let db = db_with(&["a"]);
    let result = Lock::lease_on("a", LONG)
        .renew_every(Duration::from_millis(10))
        .hold(&manager(&db), |lease| {
            db.connect()
                .transaction(|conn| {
                    conn.batch_execute("UPDATE locks SET token = token + 1, owner = 'the successor'")?;
                    if let Some(late) = on::RENEWALS_THAT_WAIT {
                        job_test::eventually("a renewal is late", || db.count(late) > 0);
                    }
                    diesel::QueryResult::Ok(())
                })
                .unwrap();
            job_test::eventually("the keeper finds the loss", || lease.is_lost());
            let fenced = lease.transaction(|_| -> Result<(), LockError> { panic!("ran") });
            assert!(matches!(fenced, Err(LockError::LeaseLost(_))), "{fenced:?}");
            assert!(matches!(lease.renew(), Err(LockError::LeaseLost(_))));
            Ok::<_, LockError>(())
        });
    assert!(matches!(result, Err(LockError::LeaseLost(_))), "{result:?}");
    // Neither a late renewal nor the release has touched what is the successor's.
    let row = Lock::list(&mut db.connect()).unwrap().remove(0);
    assert_eq!((row.token, row.owner.as_deref()), (2, Some("the successor")));
    assert!(row.expires_at.is_some());
}

/// Connections that stand still for good once they have executed the statement of which `stands_still` says so: as a
/// process does that is suspended in the middle.
#[derive(Clone)]
struct Suspended(
    Manager,
    Arc<dyn Fn(&str) -> bool + Send + Sync>,
    Arc<Mutex<Receiver<()>>>,
);

impl Connect for Suspended {
    type Conn = Conn;

    fn connect(&self) -> Result<Conn, LockError> {
        let mut conn = self.0.connect()?;
        let (stands_still, resumed) = (self.1.clone(), self.2.clone());
        conn.set_instrumentation(move |event: InstrumentationEvent<'_>| {
            if let InstrumentationEvent::FinishQuery { query, .. } = event
                && stands_still(&query.to_string())
            {
                let _ = resumed.lock().unwrap().recv();
            }
        });
        Ok(conn)
    }
}

/// After each of its statements in turn.
#[test]
fn a_candidate_that_is_suspended_in_the_middle_of_taking_a_lease_keeps_nobody_out_for_ever() {
    let db = db_with(&["a"]);
    let has_it = Arc::new(AtomicBool::new(false));
    for last in 1.. {
        has_it.store(false, Ordering::SeqCst);
        let (stood, is_standing) = channel();
        let (resume, resumed) = channel::<()>();
        let (executed, has_it_too) = (AtomicUsize::new(0), has_it.clone());
        let stood = Mutex::new(stood);
        let stands_still = move |_: &str| {
            let is_last = executed.fetch_add(1, Ordering::SeqCst) + 1 == last;
            let stands = is_last && !has_it_too.load(Ordering::SeqCst);
            if stands {
                stood.lock().unwrap().send(()).unwrap();
            }
            stands
        };
        let suspended = Suspended(
            manager(&db),
            Arc::new(stands_still),
            Arc::new(Mutex::new(resumed)),
        );
        let stood_still = thread::scope(|scope| {
            let has_it = &has_it;
            scope.spawn(move || {
                // It may have lost its session, or its lease.
                let _ = Lock::lease(&suspended, "a", BRIEF, |_| {
                    has_it.store(true, Ordering::SeqCst);
                    Ok::<_, LockError>(())
                });
            });
            let stands = is_standing.recv().is_ok();
            if stands {
                let next = Lock::lease_on("a", LONG)
                    .wait(Wait::AtMost(Duration::from_secs(20)))
                    .hold(&manager(&db), |_| Ok::<_, LockError>(()));
                assert!(
                    next.is_ok(),
                    "{next:?} beside one that stands still after statement {last}"
                );
            }
            drop(resume);
            stands
        });
        if !stood_still {
            break;
        }
    }
}

#[test]
fn a_holder_that_is_suspended_in_the_middle_of_a_renewal_keeps_nobody_out_for_ever() {
    let db = db_with(&["a"]);
    let stands_still = Arc::new(AtomicBool::new(false));
    let (resume, resumed) = channel::<()>();
    let renewal = {
        let stands_still = stands_still.clone();
        move |query: &str| {
            query.contains("UPDATE locks SET expires_at") && stands_still.swap(false, Ordering::SeqCst)
        }
    };
    let suspended = Suspended(manager(&db), Arc::new(renewal), Arc::new(Mutex::new(resumed)));
    let result = Lock::lease(&suspended, "a", BRIEF, |lease| {
        stands_still.store(true, Ordering::SeqCst);
        job_test::eventually("its renewal stands still", || {
            !stands_still.load(Ordering::SeqCst)
        });
        Lock::lease_on("a", LONG)
            .wait(Wait::AtMost(Duration::from_secs(40)))
            .hold(&manager(&db), |next| {
                assert!(next.token() > lease.token() && lease.is_lost());
                next.transaction(|conn| Ok::<_, LockError>(note(conn, 1)?))
            })?;
        drop(resume);
        Ok::<_, LockError>(())
    });
    assert!(matches!(result, Err(LockError::LeaseLost(_))), "{result:?}");
    assert_eq!(notes(&db), [1]);
}

/// Each connection in another time zone than the last.
#[derive(Clone)]
struct Travellers(Manager, Arc<AtomicUsize>);

impl Connect for Travellers {
    type Conn = Conn;

    fn connect(&self) -> Result<Conn, LockError> {
        let mut conn = self.0.connect()?;
        let next = self.1.fetch_add(1, Ordering::SeqCst);
        let zones = on::TIME_ZONES;
        conn.batch_execute(zones[next % zones.len()])?;
        Ok(conn)
    }
}

#[test]
fn sessions_whose_clocks_show_other_times_agree_about_a_lease() {
    if on::TIME_ZONES.is_empty() {
        return; // SQLite's time is that of the file's machine.
    }
    let db = db_with(&["a"]);
    let travellers = Travellers(manager(&db), Arc::default());
    for n in 1..=on::TIME_ZONES.len() as i64 {
        Lock::lease(&travellers, "a", Duration::from_secs(60), |lease| {
            for _ in on::TIME_ZONES {
                let tried = Lock::lease_on("a", LONG)
                    .wait(Wait::No)
                    .hold(&travellers, |_| Ok::<_, LockError>(()));
                assert!(matches!(tried, Err(LockError::Busy(_))), "{tried:?}");
                lease.renew()?;
            }
            let row = Lock::list(&mut travellers.connect()?)?.remove(0);
            let (since, until) = (row.acquired_at.unwrap(), row.expires_at.unwrap());
            let now = job_db::now(&mut travellers.connect()?)?;
            assert!(since <= now && now < until, "{row:?} at {now}");
            lease.transaction(|conn| Ok::<_, LockError>(note(conn, n)?))
        })
        .unwrap();
    }
    assert_eq!(notes(&db).len(), on::TIME_ZONES.len());
    // And one that has ended has ended for all of them.
    let ended = Lock::lease(&travellers, "a", LONG, |_| {
        expire(&db);
        Lock::lease_on("a", LONG)
            .wait(Wait::No)
            .hold(&travellers, |_| Ok::<_, LockError>(()))
    });
    assert!(matches!(ended, Err(LockError::LeaseLost(_))), "{ended:?}");
}
