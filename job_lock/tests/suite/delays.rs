//! Renewals that come too late, and clocks that disagree.

use super::faults::BRIEF;
use super::leases::{LONG, Manager, expire, manager};
use super::support::{db_with, note, notes, while_row_locked};
use super::{Conn, on};
use diesel::Connection;
use diesel::connection::SimpleConnection;
use job_lock::{Connect, Lock, LockError, Wait};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
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
