//! What goes wrong between a holder and its server. The database's own module starts and ends the servers.

use super::leases::Manager;
use super::{Conn, Db, on};
use diesel::r2d2::ConnectionManager;
use job_lock::{Leader, Lock, LockError, Wait};
use job_test::server::Tap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

pub(super) const BRIEF: Duration = Duration::from_millis(600);

fn manager_of(url: &str) -> Manager {
    Arc::new(ConnectionManager::<Conn>::new(url))
}

/// The holder's network swallows everything: it knows by itself when its trust ends, and another has the lease.
#[test]
fn a_renewal_that_hangs_ends_the_trust_and_another_proceeds() {
    if on::KILL.is_none() {
        return; // SQLite has no network.
    }
    let db = Db::new();
    Lock::create(&mut db.connect(), "a").unwrap();
    let tap = Tap::start(db.url());
    let result = Lock::lease(&manager_of(&tap.url(db.url())), "a", BRIEF, |lease| {
        tap.swallow(true);
        job_test::eventually("trust ends", || lease.is_lost());
        let second = Lock::lease(&manager_of(db.url()), "a", BRIEF, |next| {
            assert!(next.token() > lease.token());
            Ok::<_, LockError>(())
        });
        second.unwrap();
        // This returns, although the thread that renews cannot be ended.
        Ok::<_, LockError>("done")
    });
    assert!(matches!(result, Err(LockError::LeaseLost(_))), "{result:?}");
}

#[test]
fn a_leader_whose_network_hangs_is_told_and_another_leads() {
    if on::KILL.is_none() {
        return;
    }
    let db = Db::new();
    let tap = Tap::start(db.url());
    let (tapped, plain) = (manager_of(&tap.url(db.url())), manager_of(db.url()));
    let told = AtomicBool::new(false);
    let led = AtomicBool::new(false);
    thread::scope(|scope| {
        let candidates = Leader::new(&tapped, "a", BRIEF).on_loss(|_| told.store(true, Ordering::SeqCst));
        candidates
            .run(
                || led.load(Ordering::SeqCst),
                |term| {
                    tap.swallow(true);
                    let first = term.token();
                    let (plain, led) = (&plain, &led);
                    let second = scope.spawn(move || {
                        Leader::new(plain, "a", BRIEF).run(
                            || led.load(Ordering::SeqCst),
                            |next| {
                                assert!(next.token() > first);
                                next.transaction(|_| Ok::<_, LockError>(()))?;
                                led.store(true, Ordering::SeqCst);
                                Ok::<_, LockError>(())
                            },
                        )
                    });
                    second.join().unwrap().unwrap();
                    job_test::eventually("the first is told", || told.load(Ordering::SeqCst));
                    assert!(term.is_lost());
                    term.check()
                },
            )
            .unwrap();
    });
}

/// Its sessions are ended by the server, all of them, again and again: it renews on new ones.
#[test]
fn a_lease_outlives_its_connections() {
    if on::KILL.is_none() {
        return;
    }
    let db = Db::new();
    Lock::create(&mut db.connect(), "a").unwrap();
    let manager = manager_of(&on::url_with_a_name(&db));
    Lock::lease_on("a", Duration::from_secs(20))
        .renew_every(Duration::from_millis(20))
        .hold(&manager, |lease| {
            for _ in 0..5 {
                let expiry = || Lock::list(&mut db.connect()).unwrap()[0].expires_at.unwrap();
                on::end_named_sessions(&db);
                let before = expiry();
                job_test::eventually("it is renewed", || expiry() > before);
                lease.transaction(|_| Ok::<_, LockError>(()))?;
            }
            Ok::<_, LockError>(())
        })
        .unwrap();
}

#[allow(dead_code)] // There is no server of SQLite's.
/// The server crashes and comes again while the lease is held.
pub(in super::super) fn a_lease_outlives_a_restart(url: &str, restart: impl FnOnce()) {
    job_db::migrate(&mut on::open(url)).unwrap();
    Lock::create(&mut on::open(url), "a").unwrap();
    let manager = manager_of(url);
    Lock::lease(&manager, "a", Duration::from_secs(120), |lease| {
        lease.transaction(|_| Ok::<_, LockError>(()))?;
        restart();
        let other = Lock::lease_on("a", BRIEF)
            .wait(Wait::No)
            .hold(&manager, |_| Ok::<_, LockError>(()));
        assert!(matches!(other, Err(LockError::Busy(_))), "{other:?}");
        lease.transaction(|_| Ok::<_, LockError>(()))
    })
    .unwrap();
    let short = Lock::lease(&manager, "a", BRIEF, |_| Ok::<_, LockError>(()));
    short.unwrap();
}
