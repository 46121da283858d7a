//! What goes wrong between a holder and its server. The database's own module starts and ends the servers.

use super::leases::Manager;
use super::{Conn, Db, on};
use diesel::r2d2::ConnectionManager;
use job_lock::{Connect, Leader, Lock, LockError, Wait};
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

/// It lasts for long after the release was given up, and is not over when the test ends.
const NOT_BRIEF: Duration = Duration::from_secs(40);

#[test]
fn a_release_that_is_held_up_is_given_up_long_before_the_lease_ends() {
    use diesel::connection::SimpleConnection;
    let db = super::support::db_with(&["a"]);
    let in_the_way = &mut db.connect();
    let result = Lock::lease(&manager_of(db.url()), "a", NOT_BRIEF, |_| {
        in_the_way.batch_execute("BEGIN; UPDATE locks SET token = token")?;
        Ok::<_, LockError>("done")
    });
    // It was its own for all the time of the closure.
    assert!(matches!(result, Ok("done")), "{result:?}");
    in_the_way.batch_execute("ROLLBACK").unwrap();
}

/// Connections, while there are any to be had.
#[derive(Clone)]
struct Unless(Manager, Arc<AtomicBool>);

impl Connect for Unless {
    type Conn = Conn;

    fn connect(&self) -> Result<Conn, LockError> {
        if self.1.load(Ordering::SeqCst) {
            return Err(LockError::NoConnection("it is away".into()));
        }
        self.0.connect()
    }
}

#[test]
fn a_release_without_a_database_is_given_up_long_before_the_lease_ends() {
    if on::KILL.is_none() {
        return; // SQLite has no sessions that could end.
    }
    crate::once::warnings::listen();
    let name = format!("away/{}", on::LOG_NAME);
    let db = super::support::db_with(&[&name]);
    let is_away = Arc::new(AtomicBool::new(false));
    let connections = Unless(manager_of(&on::url_with_a_name(&db)), is_away.clone());
    let result = Lock::lease(&connections, &name, NOT_BRIEF, |_| {
        is_away.store(true, Ordering::SeqCst);
        on::end_named_sessions(&db);
        Ok::<_, LockError>("done")
    });
    assert!(matches!(result, Ok("done")), "{result:?}");
    let warned = crate::once::warnings::count(&format!("{name:?} could not be released"));
    assert_eq!(warned, 1);
    let again = Lock::lease_on(&name, NOT_BRIEF)
        .wait(Wait::No)
        .hold(&manager_of(db.url()), |_| Ok::<_, LockError>(()));
    assert!(matches!(again, Err(LockError::Busy(_))), "{again:?}");
}
