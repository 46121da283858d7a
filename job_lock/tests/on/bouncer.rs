//! Behind PgBouncer in transaction mode, with three sessions for more clients, so that each transaction may be in another one.

use super::super::Conn;
use diesel::connection::{CacheSize, SimpleConnection};
use diesel::prelude::*;
use diesel::r2d2::ConnectionManager;
use diesel::sql_types::BigInt;
use job_lock::{Leader, Lock, LockError, Slot, Unprepared};
use job_test::server::{PgBouncer, PostgresServer};
use std::collections::HashSet;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

const TTL: Duration = Duration::from_secs(60);

type Manager = Unprepared<Arc<ConnectionManager<Conn>>>;

struct Place {
    url: String,
    _bouncer: PgBouncer,
    _server: PostgresServer,
}

impl Place {
    fn new(sessions: u32) -> Self {
        let server = PostgresServer::start();
        let mut conn = PgConnection::establish(&server.url()).unwrap();
        job_db::migrate(&mut conn).unwrap();
        conn.batch_execute("CREATE TABLE counter (n BIGINT NOT NULL); INSERT INTO counter VALUES (0)")
            .unwrap();
        let bouncer = PgBouncer::start(&server.url(), sessions);
        Self {
            url: bouncer.url(&server.url()),
            _bouncer: bouncer,
            _server: server,
        }
    }

    fn connect(&self) -> PgConnection {
        let mut conn = PgConnection::establish(&self.url).unwrap();
        conn.set_prepared_statement_cache_size(CacheSize::Disabled);
        conn
    }

    fn manager(&self) -> Manager {
        Unprepared(Arc::new(ConnectionManager::new(&self.url)))
    }
}

/// Reads and writes what it has read plus one; gives the session.
fn increment(conn: &mut PgConnection) -> QueryResult<i64> {
    let n: i64 = diesel::dsl::sql::<BigInt>("SELECT n FROM counter").get_result(conn)?;
    thread::yield_now();
    conn.batch_execute(&format!("UPDATE counter SET n = {}", n + 1))?;
    diesel::dsl::sql::<BigInt>("SELECT pg_backend_pid()::bigint").get_result(conn)
}

#[test]
fn synchronize_and_leases_are_right_behind_a_proxy() {
    let place = Place::new(3);
    assert!(Lock::create(&mut place.connect(), "a").unwrap());
    let sessions = Mutex::new(HashSet::new());
    thread::scope(|scope| {
        for thread in 0..6 {
            let (place, sessions) = (&place, &sessions);
            scope.spawn(move || {
                let conn = &mut place.connect();
                let manager = place.manager();
                for _ in 0..5 {
                    let session = if thread % 2 == 0 {
                        Lock::synchronize(conn, "a", |locked| increment(locked.conn())).unwrap()
                    } else {
                        Lock::lease(&manager, "a", TTL, |lease| {
                            lease.transaction(|conn| Ok::<_, LockError>(increment(conn)?))
                        })
                        .unwrap()
                    };
                    sessions.lock().unwrap().insert(session);
                    Lock::list(conn).unwrap();
                }
            });
        }
    });
    let conn = &mut place.connect();
    assert_eq!(increment_and_get(conn), 31);
    assert_eq!(Lock::list(conn).unwrap()[0].token, 30);
    // Otherwise this has shown nothing.
    assert!(sessions.into_inner().unwrap().len() > 1);
}

fn increment_and_get(conn: &mut PgConnection) -> i64 {
    conn.transaction(|conn| {
        increment(conn)?;
        diesel::dsl::sql::<BigInt>("SELECT n FROM counter").get_result(conn)
    })
    .unwrap()
}

#[test]
fn a_lease_is_renewed_and_a_leader_leads_behind_a_proxy() {
    let place = Place::new(3);
    let stop = AtomicBool::new(false);
    Leader::new(&place.manager(), "a", TTL)
        .renew_every(Duration::from_millis(20))
        .run(
            || stop.load(Ordering::SeqCst),
            |term| {
                let conn = &mut place.connect();
                let first = Lock::list(conn)?[0].expires_at;
                job_test::eventually("a renewal", || Lock::list(conn).unwrap()[0].expires_at > first);
                term.transaction(|conn| Ok::<_, LockError>(increment(conn)?))?;
                stop.store(true, Ordering::SeqCst);
                Ok::<_, LockError>(())
            },
        )
        .unwrap();
}

#[test]
fn a_slot_is_refused_behind_a_proxy() {
    for sessions in [1, 3] {
        let place = Place::new(sessions);
        let plain = Arc::new(ConnectionManager::<Conn>::new(&place.url));
        // The proxy has had no client before, and then has had several at once.
        for _ in 0..2 {
            let results = [
                Slot::claim(&plain, "numbers", 4).map(|slot| slot.map(|slot| slot.number())),
                Slot::claim(&place.manager(), "numbers", 4).map(|slot| slot.map(|slot| slot.number())),
            ];
            for result in results {
                let error = result.unwrap_err();
                assert!(matches!(error, LockError::SharedSession(_)), "{error:?}");
                assert!(error.to_string().contains("pool_mode = transaction"));
            }
            thread::scope(|scope| {
                for _ in 0..sessions {
                    scope.spawn(|| place.connect().batch_execute("SELECT pg_sleep(0.05)").unwrap());
                }
            });
        }
    }
}
