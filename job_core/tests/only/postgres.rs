//! What the suite must say in PostgreSQL's own words, and what only PostgreSQL can show.
use super::{Conn, Db};

#[path = "held_rows.rs"]
mod held_rows; // rows that somebody else has locked
#[path = "postgres_plans.rs"]
mod plans; // no statement on a hot path scans a table

/// Lets a session check foreign keys.
pub(super) const ENFORCE_FOREIGN_KEYS: &str = "SET session_replication_role = origin";
/// Lets a session wait for no lock for long.
const IMPATIENT: &str = "SET lock_timeout = '2s'";
/// A time in the past.
pub(super) const PAST: &str = "'2001-01-01 00:00:00+00'";
/// Each isolation level as a session's default.
pub(super) const ISOLATION_LEVELS: &[&str] = &[
    "SET default_transaction_isolation = 'read uncommitted'",
    "SET default_transaction_isolation = 'read committed'",
    "SET default_transaction_isolation = 'repeatable read'",
    "SET default_transaction_isolation = 'serializable'",
];
/// The levels at which a transaction reads one snapshot.
pub(super) const SNAPSHOT_LEVELS: &[&str] = &[
    "SET default_transaction_isolation = 'repeatable read'",
    "SET default_transaction_isolation = 'serializable'",
];
/// Session time zones.
pub(super) const TIME_ZONES: &[&str] = &[
    "SET TIME ZONE 'Asia/Kathmandu'",
    "SET TIME ZONE 'America/New_York'",
    "SET TIME ZONE 'Europe/Vienna'",
];

/// Sets the id that the next job gets.
pub(super) fn set_next_id(db: &Db, id: i64) {
    db.execute(&format!("ALTER TABLE jobs ALTER COLUMN id RESTART WITH {id}"));
}

/// Waits until some session on this database waits for another's lock.
pub(super) fn wait_for_a_waiter(db: &Db) {
    let schema = db.text("SELECT current_schema()::text").unwrap();
    // A schema of its own is all that sets the test's sessions apart.
    let sql = format!(
        "SELECT count(*) FROM pg_stat_activity a WHERE cardinality(pg_blocking_pids(a.pid)) > 0
         AND EXISTS (SELECT 1 FROM pg_locks l JOIN pg_class c ON c.oid = l.relation
                     WHERE l.pid = a.pid AND c.relnamespace = '{schema}'::regnamespace)"
    );
    job_test::eventually("a session waits for a lock", || db.count(&sql) > 0);
}

/// A table's columns, in order: name, and whether it may be NULL.
pub(super) fn columns(db: &Db, table: &str) -> Vec<(String, bool)> {
    db.texts(&format!(
        "SELECT column_name || ':' || is_nullable FROM information_schema.columns
         WHERE table_schema = current_schema() AND table_name = '{table}' ORDER BY ordinal_position"
    ))
    .into_iter()
    .map(|text| {
        let text = text.unwrap();
        let (name, nullable) = text.split_once(':').unwrap();
        (name.to_owned(), nullable == "YES")
    })
    .collect()
}

/// Whether a duplicate key that this transaction's snapshot does not show is an error.
pub(super) const SNAPSHOT_HIDES_KEYS: bool = true;

#[test]
fn an_apps_own_sequence_of_the_usual_name_does_not_give_ids() {
    use super::suite::support::any;
    let db = Db::empty();
    db.execute("CREATE SEQUENCE jobs_id_seq START 1000");
    let conn = &mut db.connect();
    job_core::migrate(conn).unwrap();
    let single = any().enqueue(conn).unwrap().id;
    let bulk = job_core::Job::enqueue_all(conn, [any(), any().unique("key")]).unwrap();
    assert_eq!((single, bulk), (1, vec![2, 3]));
    db.assert_invariants();
}

#[cfg(feature = "listen")]
#[test]
fn a_bare_connection_hears_of_jobs_and_a_wrapped_one_goes_without() {
    use super::suite::support::any;
    use job_core::notify;
    let db = Db::new();
    let (conn, listener) = (&mut db.connect(), &mut db.connect());
    assert!(notify::listen(listener).unwrap());
    // Of a burst only some are notified, so that there may be need of more than one.
    job_test::eventually("a notification", || {
        any().enqueue(conn).unwrap();
        notify::received(listener).unwrap()
    });
    let pool = db.pool(1);
    assert!(!notify::listen(&mut pool.get().unwrap()).unwrap());
    assert!(!notify::received(&mut pool.get().unwrap()).unwrap());
    db.assert_invariants();
}

#[test]
fn a_large_claim_waits_for_its_turn_but_not_for_long() {
    use super::suite::support::{any, register};
    use diesel::connection::SimpleConnection;
    use diesel::prelude::*;
    use job_core::JobBackend;
    let db = Db::new();
    let conn = &mut db.connect();
    let worker = register(conn);
    job_core::Job::enqueue_all(conn, (0..300).map(|_| any().queue("turns"))).unwrap();
    let request = job_core::ClaimRequest {
        worker: worker.id,
        queue: "turns",
        priority: 0,
        after: 0,
        kinds: &worker.kinds,
        limit: 100,
    };
    // Whoever has the turn now keeps it: a process that was stopped in the middle of its claim.
    let stopped = &mut db.connect();
    stopped.batch_execute("BEGIN").unwrap();
    diesel::pg::Pg::take_turn(stopped, &request).unwrap();
    assert!(job_core::claim_in_turn(conn, &request).unwrap().is_none());
    assert_eq!(job_core::claim(conn, &request).unwrap().len(), 100);
    stopped.batch_execute("ROLLBACK").unwrap();
    let claimed = job_core::claim_in_turn(conn, &request).unwrap();
    assert_eq!(claimed.unwrap().len(), 100);
    // A turn ends with the claim.
    let locks = "SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND pid = pg_backend_pid()";
    let held: i64 = diesel::select(diesel::dsl::sql::<diesel::sql_types::BigInt>(&format!(
        "({locks})"
    )))
    .get_result(conn)
    .unwrap();
    assert_eq!(held, 0);
    assert_eq!(job_core::claim(conn, &request).unwrap().len(), 100);
    db.assert_invariants();
}

/// A worker looks for the socket of its connection while it listens: nothing may be lost by it.
#[cfg(feature = "listen")]
#[test]
fn what_comes_while_something_is_unread_is_heard_afterwards() {
    use diesel::connection::SimpleConnection;
    use job_core::notify;
    let db = Db::new();
    let (conn, listener) = (&mut db.connect(), &mut db.connect());
    assert!(notify::listen(listener).unwrap());
    let mut calls = 0;
    let mut work = || {
        calls += 1;
        conn.batch_execute("NOTIFY gatun").unwrap();
    };
    assert!(notify::while_unread(listener, &mut work).unwrap());
    assert_eq!(calls, 1);
    job_test::eventually("the notification", || notify::received(listener).unwrap());
    let pool = db.pool(1);
    let mut never = || panic!("nothing is unread");
    assert!(!notify::while_unread(&mut pool.get().unwrap(), &mut never).unwrap());
    db.assert_invariants();
}
