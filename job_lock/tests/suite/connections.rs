//! Connections that are not as they should be: in a transaction, dead, refused, to a server that is too old.

use super::leases::{LONG, Manager, manager};
use super::slots::namespace;
use super::support::{db_with, note, notes};
use super::{Conn, Db, on};
use diesel::connection::{CacheSize, InstrumentationEvent, SimpleConnection};
use diesel::prelude::*;
use diesel::r2d2::ConnectionManager;
use job_lock::{Connect, Leader, Lock, LockError, Slot, Wait};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

const SHORT: Duration = Duration::from_millis(100);

/// Connections that something was done to first.
#[derive(Clone)]
struct Odd(Manager, Arc<dyn Fn(&mut Conn) + Send + Sync>);

impl Odd {
    fn new(db: &Db, prepare: impl Fn(&mut Conn) + Send + Sync + 'static) -> Self {
        Self(manager(db), Arc::new(prepare))
    }
}

impl Connect for Odd {
    type Conn = Conn;

    fn connect(&self) -> Result<Conn, LockError> {
        let mut conn = self.0.connect()?;
        (self.1)(&mut conn);
        Ok(conn)
    }
}

fn lease<M: Connect>(connections: &M) -> Result<(), LockError> {
    Lock::lease(connections, "a", LONG, |_| Ok(()))
}

fn lead<M: Connect>(connections: &M) -> Result<(), LockError> {
    // Its pauses are a share of the time to live.
    let looks = AtomicUsize::new(0);
    let is_enough = || looks.fetch_add(1, Ordering::SeqCst) > 100;
    Leader::new(connections, "a", SHORT).run(is_enough, |_| Err(LockError::NoNames))
}

#[test]
fn a_lease_inside_a_callers_transaction_is_a_transaction_of_its_own() {
    let db = db_with(&["a"]);
    let undone = db.connect().transaction(|conn| {
        conn.batch_execute("SELECT n FROM notes")?;
        Lock::lease(&manager(&db), "a", LONG, |lease| {
            lease.transaction(|conn| Ok::<_, LockError>(note(conn, 1)?))
        })?;
        Err::<(), _>(diesel::result::Error::RollbackTransaction)
    });
    assert!(undone.is_err());
    assert_eq!(notes(&db), [1]);
}

/// A row that the caller's own transaction has locked is held, by whom does not matter.
#[test]
fn a_lease_on_what_the_callers_transaction_holds_is_busy() {
    let db = db_with(&["a"]);
    Lock::synchronize(&mut db.connect(), "a", |_| {
        let tried = Lock::lease_on("a", LONG)
            .wait(Wait::No)
            .hold(&manager(&db), |_| Ok::<_, LockError>(()));
        assert!(matches!(tried, Err(LockError::Busy(_))), "{tried:?}");
        Ok::<_, LockError>(())
    })
    .unwrap();
}

/// As a pool gives them whose connections have a test transaction.
#[test]
fn connections_that_are_in_a_transaction_are_refused() {
    let db = db_with(&["a"]);
    let odd = Odd::new(&db, |conn| conn.begin_test_transaction().unwrap());
    let slot = Slot::claim(&odd, &namespace(&db), 1).map(|_| ());
    for result in [lease(&odd), lead(&odd), slot] {
        assert!(matches!(result, Err(LockError::OpenTransaction)), "{result:?}");
    }
}

/// As behind a proxy that does not know prepared statements.
#[test]
fn a_slot_leaves_the_cache_of_prepared_statements_as_it_is() {
    let db = db_with(&[]);
    let cached = Arc::new(AtomicUsize::new(0));
    let count = cached.clone();
    let odd = Odd::new(&db, move |conn| {
        let count = count.clone();
        conn.set_prepared_statement_cache_size(CacheSize::Disabled);
        conn.set_instrumentation(move |event: InstrumentationEvent<'_>| {
            if matches!(event, InstrumentationEvent::CacheQuery { .. }) {
                count.fetch_add(1, Ordering::SeqCst);
            }
        });
    });
    let mut slot = Slot::claim(&odd, &namespace(&db), 1).unwrap().unwrap();
    slot.transaction(|conn| {
        diesel::select(diesel::dsl::sql::<diesel::sql_types::Integer>("1")).execute(conn)?;
        Ok::<_, LockError>(())
    })
    .unwrap();
    slot.check().unwrap();
    assert_eq!(cached.load(Ordering::SeqCst), 0);
}

#[test]
fn a_renewal_on_a_connection_that_died_idle_takes_another() {
    if on::KILL.is_none() {
        return; // SQLite has no sessions.
    }
    let db = db_with(&["a"]);
    let manager = Arc::new(ConnectionManager::<Conn>::new(on::url_with_a_name(&db)));
    Lock::lease(&manager, "a", LONG, |lease| {
        lease.transaction(|_| Ok::<_, LockError>(()))?;
        on::end_named_sessions(&db);
        lease.renew()
    })
    .unwrap();
}

#[test]
fn a_candidate_gives_up_where_there_is_no_table_and_says_what_to_do() {
    let db = db_with(&[]);
    db.execute("DROP TABLE locks");
    let error = lead(&manager(&db)).unwrap_err();
    assert!(matches!(error, LockError::Database(_)), "{error:?}");
    assert!(error.to_string().contains("job_lock::migrate"), "{error}");
}

#[test]
fn a_candidate_gives_up_where_the_database_refuses_its_connections() {
    let db = db_with(&[]);
    for url in on::refused_urls(&db) {
        let manager = Arc::new(ConnectionManager::<Conn>::new(&url));
        for result in [lease(&manager), lead(&manager)] {
            assert!(matches!(result, Err(LockError::Refused(_))), "{url}: {result:?}");
        }
    }
}

#[test]
fn no_error_repeats_a_connection_string() {
    for url in [
        "postgres//u:secret@h",
        "postgres://u:secret@h:a/b",
        "nowhere/u:secret@h",
    ] {
        let manager = Arc::new(ConnectionManager::<Conn>::new(url));
        let error = lease(&manager).unwrap_err();
        let is_refused = matches!(error, LockError::Refused(_) | LockError::NoConnection(_));
        assert!(is_refused, "{error:?}");
        assert!(!format!("{error} {error:?}").contains("secret"), "{error:?}");
    }
}

/// A server that is only away may come again.
#[test]
fn a_candidate_waits_for_a_server_that_is_away() {
    if on::KILL.is_none() {
        return;
    }
    let db = db_with(&[]);
    let tries = AtomicUsize::new(0);
    let nobody_listens = std::net::TcpListener::bind("127.0.0.1:0")
        .and_then(|listener| listener.local_addr())
        .unwrap();
    let (before, after) = db.url().split_once("127.0.0.1:").unwrap();
    let path = after.split_once('/').unwrap().1;
    let url = format!("{before}{nobody_listens}/{path}");
    Leader::new(&Arc::new(ConnectionManager::<Conn>::new(url)), "a", SHORT)
        .run(
            || tries.fetch_add(1, Ordering::SeqCst) > 12,
            |_| Err(LockError::NoNames),
        )
        .unwrap();
}

/// Until the address leads to the server that is the first now.
#[test]
fn a_candidate_waits_for_a_server_that_takes_writes() {
    let Some(read_only) = on::READ_ONLY else {
        return;
    };
    let db = db_with(&["a"]);
    let tries = Arc::new(AtomicUsize::new(0));
    let count = tries.clone();
    let odd = Odd::new(&db, move |conn| {
        if count.fetch_add(1, Ordering::SeqCst) < 6 {
            conn.batch_execute(read_only).unwrap();
        }
    });
    assert!(matches!(lead(&odd), Err(LockError::NoNames)));
    assert!(tries.load(Ordering::SeqCst) > 6);
}

#[test]
fn a_server_that_is_too_old_is_named_by_whatever_takes_a_lock() {
    let db = db_with(&[]);
    let Some(pretend) = on::PRETEND_TO_BE_OLD else {
        return; // Its version cannot be feigned in a session.
    };
    // Some statement fails for a reason that the library does not know.
    db.execute("DROP TABLE locks");
    let odd = Odd::new(&db, pretend);
    let conn = &mut odd.connect().unwrap();
    let results = [
        lease(&odd),
        lead(&odd),
        Lock::create(conn, "a").map(|_| ()),
        Lock::synchronize(conn, "a", |_| Ok(())),
        Lock::list(conn).map(|_| ()),
    ];
    for result in results {
        assert!(
            matches!(result, Err(LockError::ServerTooOld { .. })),
            "{result:?}"
        );
    }
}
