use super::on;
use super::support::{db_with, note, notes, while_held};
use super::{Conn, Db};
use diesel::r2d2::ConnectionManager;
use job_lock::{Connect, Lease, Lock, LockError, LockState, Wait};
use std::sync::mpsc::channel;
use std::sync::{Arc, Barrier};
use std::thread;
use std::time::Duration;

pub(super) type Manager = Arc<ConnectionManager<Conn>>;

/// So long that nothing is renewed and nothing ends during a test.
pub(super) const LONG: Duration = Duration::from_secs(600);

pub(super) fn manager(db: &Db) -> Manager {
    Arc::new(db.manager())
}

/// As if the time had passed.
pub(super) fn expire(db: &Db) {
    db.execute("UPDATE locks SET expires_at = acquired_at WHERE expires_at IS NOT NULL");
}

fn ok<M: Connect>(_: &Lease<M>) -> Result<(), LockError> {
    Ok(())
}

fn try_lease(db: &Db) -> Result<(), LockError> {
    Lock::lease_on("a", LONG).wait(Wait::No).hold(&manager(db), ok)
}

fn write<M: Connect<Conn = Conn>>(lease: &Lease<M>, n: i64) -> Result<(), LockError> {
    lease.transaction(|conn| Ok(note(conn, n)?))
}

/// The flaw of the first idea: where nobody had made the row, the block ran with no lock at all.
#[test]
fn flaw_1_a_lease_on_a_lock_that_nobody_made_is_unknown_and_the_closure_does_not_run() {
    let db = db_with(&[]);
    let result: Result<(), LockError> = Lock::lease(&manager(&db), "a", LONG, |_| panic!("ran"));
    assert!(matches!(result, Err(LockError::Unknown(_))), "{result:?}");
    Lock::lease_on("a", LONG)
        .create_missing()
        .hold(&manager(&db), ok)
        .unwrap();
}

#[test]
fn one_at_a_time_and_each_with_a_higher_token() {
    let db = db_with(&["a"]);
    thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                for _ in 0..5 {
                    Lock::lease(&manager(&db), "a", LONG, |lease| {
                        // Not fenced, so that only the lease keeps the others out.
                        let conn = &mut db.connect();
                        super::support::increment(conn);
                        write(lease, lease.token())
                    })
                    .unwrap();
                }
            });
        }
    });
    assert_eq!(db.count("SELECT n FROM counter"), 20);
    assert_eq!(notes(&db), (1..=20).collect::<Vec<_>>());
}

#[test]
fn a_lease_and_synchronize_on_one_name_exclude_each_other() {
    let db = db_with(&["a"]);
    Lock::lease(&manager(&db), "a", LONG, |_| {
        for wait in [Wait::No, Wait::AtMost(Duration::from_millis(60))] {
            let result: Result<(), LockError> = Lock::on("a")
                .wait(wait)
                .synchronize(&mut db.connect(), |_| panic!("ran"));
            assert!(matches!(result, Err(LockError::Busy(_))), "{result:?}");
        }
        Ok::<_, LockError>(())
    })
    .unwrap();
    while_held(&db, "a", || {
        assert!(matches!(try_lease(&db), Err(LockError::Busy(_))));
    });
    try_lease(&db).unwrap();
}

#[test]
fn synchronize_waits_for_the_end_of_a_lease_and_takes_over_one_that_has_ended() {
    let db = db_with(&["a"]);
    let (asked, is_asked) = channel();
    thread::scope(|scope| {
        Lock::lease(&manager(&db), "a", LONG, |lease| {
            let db = &db;
            scope.spawn(move || {
                asked.send(()).unwrap();
                Lock::synchronize(&mut db.connect(), "a", |locked| note(locked.conn(), 2)).unwrap();
            });
            is_asked.recv().unwrap();
            write(lease, 1)
        })
        .unwrap();
    });
    let result = Lock::lease(&manager(&db), "a", LONG, |lease| {
        expire(&db);
        Lock::synchronize(&mut db.connect(), "a", |locked| note(locked.conn(), 3)).unwrap();
        assert!(matches!(write(lease, 4), Err(LockError::LeaseLost(_))));
        Ok::<_, LockError>(())
    });
    assert!(matches!(result, Err(LockError::LeaseLost(_))));
    assert_eq!(notes(&db), [1, 2, 3]);
}

#[test]
fn a_joined_synchronize_does_not_wait_for_a_lease() {
    use diesel::Connection;
    let db = db_with(&["a"]);
    Lock::lease(&manager(&db), "a", LONG, |_| {
        db.connect()
            .transaction(|conn| {
                let result: Result<(), LockError> = Lock::on("a").join().synchronize(conn, |_| panic!("ran"));
                assert!(matches!(result, Err(LockError::Busy(_))), "{result:?}");
                diesel::QueryResult::Ok(())
            })
            .unwrap();
        Ok::<_, LockError>(())
    })
    .unwrap();
}

#[test]
fn a_lease_waits_as_told() {
    let db = db_with(&["a"]);
    let first = manager(&db);
    Lock::lease(&first, "a", LONG, |_| {
        assert!(matches!(try_lease(&db), Err(LockError::Busy(_))));
        let brief = Lock::lease_on("a", LONG).wait(Wait::AtMost(Duration::from_millis(120)));
        assert!(matches!(brief.hold(&first, ok), Err(LockError::Busy(_))));
        Ok::<_, LockError>(())
    })
    .unwrap();
    let (asked, is_asked) = channel();
    thread::scope(|scope| {
        Lock::lease(&first, "a", LONG, |lease| {
            let db = &db;
            scope.spawn(move || {
                asked.send(()).unwrap();
                Lock::lease(&manager(db), "a", LONG, |lease| write(lease, 2)).unwrap();
            });
            is_asked.recv().unwrap();
            write(lease, 1)
        })
        .unwrap();
    });
    assert_eq!(notes(&db), [1, 2]);
}

#[test]
fn a_time_to_live_below_twice_the_interval_is_refused() {
    let db = db_with(&["a"]);
    let ttl = Duration::from_secs(1);
    for (ttl, interval) in [
        (ttl, Duration::from_millis(501)),
        (ttl, Duration::ZERO),
        (ttl, Duration::MAX),
        (Duration::from_millis(9), Duration::from_millis(1)),
        (Duration::MAX, ttl),
    ] {
        let result: Result<(), LockError> = Lock::lease_on("a", ttl)
            .renew_every(interval)
            .hold(&manager(&db), |_| panic!("ran"));
        assert!(matches!(result, Err(LockError::InvalidTtl { .. })), "{result:?}");
    }
    Lock::lease_on("a", ttl)
        .renew_every(ttl / 2)
        .hold(&manager(&db), ok)
        .unwrap();
}

#[test]
fn a_lost_lease_is_an_error_even_where_the_closure_succeeded() {
    let db = db_with(&["a"]);
    let result = Lock::lease(&manager(&db), "a", LONG, |lease| {
        assert!(!lease.is_lost());
        write(lease, 1)?;
        expire(&db);
        try_lease(&db)?;
        Ok::<_, LockError>("done")
    });
    assert!(matches!(result, Err(LockError::LeaseLost(name)) if name == "a"));
    // What was fenced is kept.
    assert_eq!(notes(&db), [1]);
}

#[test]
fn a_closures_error_is_handed_on_and_the_lease_is_released() {
    let db = db_with(&["a"]);
    let result: anyhow::Result<()> = Lock::lease(&manager(&db), "a", LONG, |_| anyhow::bail!("no"));
    assert_eq!(result.unwrap_err().to_string(), "no");
    try_lease(&db).unwrap();
}

#[test]
fn a_panic_releases_the_lease_and_goes_on() {
    let db = db_with(&["a"]);
    let result = thread::scope(|scope| {
        let run = || {
            Lock::lease(&manager(&db), "a", LONG, |lease| {
                lease.transaction(|conn| {
                    note(conn, 1)?;
                    panic!("oh");
                    #[allow(unreachable_code)]
                    Ok::<_, LockError>(())
                })
            })
        };
        scope.spawn(run).join()
    });
    assert_eq!(result.unwrap_err().downcast_ref(), Some(&"oh"));
    assert!(notes(&db).is_empty());
    try_lease(&db).unwrap();
}

#[test]
fn lock_at_least_keeps_others_out_after_a_short_run() {
    let db = db_with(&["a"]);
    Lock::lease_on("a", LONG)
        .lock_at_least(LONG)
        .hold(&manager(&db), ok)
        .unwrap();
    assert!(matches!(try_lease(&db), Err(LockError::Busy(_))));
    // The time counts from the beginning, not from the end.
    assert_eq!(Lock::list(&mut db.connect()).unwrap()[0].state, LockState::Held);
    expire(&db);
    try_lease(&db).unwrap();
    Lock::lease_on("a", LONG)
        .lock_at_least(Duration::from_nanos(1))
        .hold(&manager(&db), ok)
        .unwrap();
    try_lease(&db).unwrap();
}

#[test]
fn a_successor_waits_for_a_fenced_transaction_that_has_begun() {
    let db = db_with(&["a"]);
    Lock::lease(&manager(&db), "a", LONG, |lease| {
        lease.transaction(|conn| {
            note(conn, 1)?;
            // Expired or not, the row is locked.
            assert!(matches!(try_lease(&db), Err(LockError::Busy(_))));
            Ok::<_, LockError>(())
        })?;
        // The fenced transaction has renewed the lease too.
        expire(&db);
        write(lease, 2)?;
        assert!(matches!(try_lease(&db), Err(LockError::Busy(_))));
        Ok::<_, LockError>(())
    })
    .unwrap();
    assert_eq!(notes(&db), [1, 2]);
}

#[test]
fn a_deposed_holders_fenced_transaction_does_not_run() {
    let db = db_with(&["a"]);
    let result = Lock::lease(&manager(&db), "a", LONG, |old| {
        expire(&db);
        Lock::lease(&manager(&db), "a", LONG, |new| {
            assert!(new.token() > old.token());
            assert!(matches!(write(old, 1), Err(LockError::LeaseLost(_))));
            assert!(old.is_lost() && old.check().is_err());
            write(new, 2)
        })
    });
    assert!(matches!(result, Err(LockError::LeaseLost(_))));
    assert_eq!(notes(&db), [2]);
}

#[test]
fn fenced_transactions_of_several_threads_run_one_at_a_time_and_do_not_nest() {
    let db = db_with(&["a"]);
    Lock::lease(&manager(&db), "a", LONG, |lease| {
        thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    lease
                        .transaction(|conn| {
                            super::support::increment(conn);
                            Ok::<_, LockError>(())
                        })
                        .unwrap();
                });
            }
        });
        lease.transaction(|_| {
            let nested = write(lease, 1).unwrap_err();
            assert!(matches!(nested, LockError::Nested(_)), "{nested:?}");
            assert!(!nested.to_string().contains("join"), "{nested}");
            assert!(matches!(lease.renew(), Err(LockError::Nested(_))));
            Ok::<_, LockError>(())
        })
    })
    .unwrap();
    assert_eq!(db.count("SELECT n FROM counter"), 4);
}

#[test]
fn a_fenced_transaction_that_the_closure_ends_is_an_error() {
    use diesel::connection::SimpleConnection;
    let db = db_with(&["a"]);
    Lock::lease(&manager(&db), "a", LONG, |lease| {
        let result = lease.transaction(|conn| {
            note(conn, 1)?;
            conn.batch_execute("ROLLBACK")?;
            Ok::<_, LockError>(())
        });
        assert!(matches!(result, Err(LockError::Lost(_))), "{result:?}");
        write(lease, 2)
    })
    .unwrap();
    assert_eq!(notes(&db), [2]);
}

#[test]
fn a_lease_is_renewed_while_the_closure_runs() {
    let db = db_with(&["a"]);
    let ttl = Duration::from_secs(10);
    Lock::lease_on("a", ttl)
        .renew_every(Duration::from_millis(20))
        .hold(&manager(&db), |lease| {
            let expiry = || Lock::list(&mut db.connect()).unwrap()[0].expires_at.unwrap();
            let first = expiry();
            job_test::eventually("two renewals", || expiry() > first + Duration::from_millis(30));
            assert!(!lease.is_lost());
            // It is lost where the row says so, at the next renewal.
            db.execute("UPDATE locks SET token = token + 1");
            job_test::eventually("the keeper finds the loss", || lease.is_lost());
            Ok::<_, LockError>(())
        })
        .unwrap_err();
}

#[test]
fn list_shows_leases() {
    let db = db_with(&["a"]);
    Lock::lease(&manager(&db), "a", LONG, |lease| {
        let row = Lock::list(&mut db.connect()).unwrap().remove(0);
        assert_eq!((row.state, row.token), (LockState::Held, lease.token()));
        let process = format!("/{}/", std::process::id());
        assert!(row.owner.is_some_and(|owner| owner.contains(&process)));
        assert!(row.expires_at > row.acquired_at);
        Ok::<_, LockError>(())
    })
    .unwrap();
    let row = Lock::list(&mut db.connect()).unwrap().remove(0);
    assert_eq!((row.state, row.expires_at), (on::LISTED_FREE, None));
}

#[test]
fn a_pool_lends_a_lease_its_connections_and_has_them_back() {
    let db = db_with(&["a"]);
    let pool = db.pool(2);
    for n in 1..=3 {
        Lock::lease(&pool, "a", LONG, |lease| {
            lease.transaction(|conn| Ok::<_, LockError>(note(conn, n)?))
        })
        .unwrap();
    }
    let both = Barrier::new(2);
    thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                let _conn = pool.get().unwrap();
                both.wait();
            });
        }
    });
    assert_eq!(notes(&db), [1, 2, 3]);
}
