use super::{Conn, Db};
use diesel::connection::SimpleConnection;
use diesel::prelude::*;
use diesel::sql_types::Integer;
use job_db::{Database, Fault, MigrateError, migrate};
use job_test::{Kind, Postgres};
use std::sync::Barrier;
use std::thread;

fn fault(error: &diesel::result::Error) -> Fault {
    diesel::pg::Pg::fault(error)
}

/// A table of two rows to fight for.
fn two_rows() -> Db {
    let db = Db::empty();
    db.execute("CREATE TABLE fought_for (id INTEGER PRIMARY KEY, n INTEGER); INSERT INTO fought_for VALUES (1, 0), (2, 0)");
    db
}

fn add_to(conn: &mut Conn, id: i32) -> QueryResult<()> {
    conn.batch_execute(&format!("UPDATE fought_for SET n = n + 1 WHERE id = {id}"))
}

#[test]
fn a_deadlock_is_contended() {
    let db = two_rows();
    let barrier = Barrier::new(2);
    let fight = |first, second| {
        let conn = &mut db.connect();
        conn.batch_execute("SET deadlock_timeout = '20ms'; BEGIN")
            .unwrap();
        add_to(conn, first).unwrap();
        barrier.wait();
        let result = add_to(conn, second);
        conn.batch_execute(if result.is_ok() { "COMMIT" } else { "ROLLBACK" })
            .unwrap();
        result.err()
    };
    let errors: Vec<_> = thread::scope(|scope| {
        let other = scope.spawn(|| fight(2, 1));
        [fight(1, 2), other.join().unwrap()]
            .into_iter()
            .flatten()
            .collect()
    });
    assert_eq!(errors.len(), 1, "{errors:?}");
    assert_eq!(fault(&errors[0]), Fault::Contended, "{errors:?}");
}

#[test]
fn waits_that_end_are_contended() {
    let db = two_rows();
    let holder = &mut db.connect();
    holder.batch_execute("BEGIN").unwrap();
    add_to(holder, 1).unwrap();
    for wait in [
        "SET lock_timeout = '20ms'; UPDATE fought_for SET n = 9 WHERE id = 1",
        "SET statement_timeout = '20ms'; UPDATE fought_for SET n = 9 WHERE id = 1",
        "SELECT 1 FROM fought_for WHERE id = 1 FOR UPDATE NOWAIT",
    ] {
        let error = db.connect().batch_execute(wait).unwrap_err();
        assert_eq!(fault(&error), Fault::Contended, "{error}");
    }
}

#[test]
fn a_serialization_failure_is_contended() {
    for level in ["REPEATABLE READ", "SERIALIZABLE"] {
        let db = two_rows();
        let conn = &mut db.connect();
        conn.batch_execute(&format!(
            "BEGIN ISOLATION LEVEL {level}; SELECT n FROM fought_for"
        ))
        .unwrap();
        add_to(&mut db.connect(), 1).unwrap();
        let error = add_to(conn, 1).unwrap_err();
        assert_eq!(fault(&error), Fault::Contended, "{error}");
    }
}

#[test]
fn a_serialization_failure_at_commit_is_contended() {
    let db = two_rows();
    let (first, second) = (&mut db.connect(), &mut db.connect());
    let read_all = "SELECT sum(n) FROM fought_for";
    first
        .batch_execute(&format!("BEGIN ISOLATION LEVEL SERIALIZABLE; {read_all}"))
        .unwrap();
    let error = second
        .build_transaction()
        .serializable()
        .run(|conn| {
            conn.batch_execute(read_all)?;
            add_to(conn, 2)?;
            add_to(first, 1)?;
            first.batch_execute("COMMIT")
        })
        .unwrap_err();
    assert_eq!(fault(&error), Fault::Contended, "{error}");
}

#[test]
fn a_terminated_connection_is_disconnected() {
    let db = Db::empty();
    for transaction in ["SELECT 1", "BEGIN"] {
        let conn = &mut db.connect();
        conn.batch_execute(transaction).unwrap();
        let pid: i32 = diesel::dsl::sql::<Integer>("SELECT pg_backend_pid()")
            .get_result(conn)
            .unwrap();
        db.execute(&format!("SELECT pg_terminate_backend({pid}, 10000)"));
        for _ in 0..2 {
            let error = conn.batch_execute("SELECT 1").unwrap_err();
            assert_eq!(fault(&error), Fault::Disconnected, "{error}");
        }
    }
}

#[test]
fn a_terminated_connection_is_disconnected_in_diesels_own_transaction() {
    let db = two_rows();
    let conn = &mut db.connect();
    let error = conn
        .transaction(|conn| {
            let pid: i32 = diesel::dsl::sql::<Integer>("SELECT pg_backend_pid()").get_result(conn)?;
            db.execute(&format!("SELECT pg_terminate_backend({pid}, 10000)"));
            add_to(conn, 1)
        })
        .unwrap_err();
    assert_eq!(fault(&error), Fault::Disconnected, "{error}");
    let error = conn.transaction(|conn| add_to(conn, 1)).unwrap_err();
    assert_eq!(fault(&error), Fault::Disconnected, "{error}");
}

#[test]
fn a_session_time_zone_does_not_shift_times() {
    let db = Db::new();
    let shifted = &mut db.connect();
    shifted.batch_execute("SET TIME ZONE 'Asia/Kathmandu'").unwrap();
    let before = job_db::now(&mut db.connect()).unwrap();
    let time = job_db::now(shifted).unwrap();
    let after = job_db::now(&mut db.connect()).unwrap();
    assert!(before <= time && time <= after, "{before} {time} {after}");
    shifted
        .batch_execute(
            "INSERT INTO workers VALUES (1, '', 1, now(), '2026-01-01T12:00:00Z', '[]', '[]');
             SET TIME ZONE 'America/New_York'",
        )
        .unwrap();
    let sql = "SELECT beat_at FROM workers";
    for conn in [shifted, &mut db.connect()] {
        let read: chrono::DateTime<chrono::Utc> =
            diesel::dsl::sql::<job_db::Instant>(sql).get_result(conn).unwrap();
        assert_eq!(read.to_rfc3339(), "2026-01-01T12:00:00+00:00");
    }
}

#[test]
fn a_failed_migration_leaves_nothing_behind() {
    let db = Db::empty();
    // No table has this name, but an index of ours does.
    db.execute("CREATE SEQUENCE jobs_finished_status");
    let conn = &mut db.connect();
    let error = migrate(conn).unwrap_err();
    assert!(matches!(error, MigrateError::Migration { .. }), "{error}");
    let tables = diesel::pg::Pg::existing_tables(conn, &job_db::TABLES).unwrap();
    assert_eq!(tables, Vec::<String>::new());
}

#[test]
fn two_schemas_are_migrated_each_for_itself() {
    let (first, second) = (Db::new(), Db::new());
    first.execute("INSERT INTO locks (name) VALUES ('mine')");
    assert_eq!(second.count("SELECT count(*) FROM locks"), 0);
}

#[test]
fn an_apps_default_of_a_higher_isolation_level_does_not_disturb_the_migration() {
    let db = Db::empty();
    let barrier = Barrier::new(4);
    thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                let conn = &mut db.connect();
                conn.batch_execute("SET default_transaction_isolation = 'serializable'")
                    .unwrap();
                barrier.wait();
                migrate(conn).unwrap();
            });
        }
    });
}

/// Removes by SQL what a test made on the server, also when the test has failed.
struct Removed(String);

impl Drop for Removed {
    fn drop(&mut self) {
        let done =
            Conn::establish(&Postgres::server()).map(|mut conn| conn.batch_execute(&self.0).map_err(drop));
        if !matches!(done, Ok(Ok(()))) {
            eprintln!("failed: {}", self.0);
        }
    }
}

#[test]
fn a_schema_may_have_a_name_that_needs_quotes() {
    let server = Postgres::server();
    for name in ["Gatun Test", "gatun-test", "gatun.test", "select"] {
        let name = format!("{name} {}", std::process::id());
        let conn = &mut Conn::establish(&server).unwrap();
        conn.batch_execute(&format!("CREATE SCHEMA \"{name}\"")).unwrap();
        let _removed = Removed(format!(
            "SET client_min_messages = warning; DROP SCHEMA \"{name}\" CASCADE"
        ));
        conn.batch_execute(&format!("SET search_path = \"{name}\""))
            .unwrap();
        for _ in 0..2 {
            migrate(conn).unwrap();
        }
        let mut tables = diesel::pg::Pg::existing_tables(conn, &job_db::TABLES).unwrap();
        tables.sort_unstable();
        let mut ours = job_db::TABLES.to_vec();
        ours.sort_unstable();
        assert_eq!(tables, ours, "{name}");
        // A table of the app's with one of our names is seen there too.
        conn.batch_execute("DROP TABLE job_schema_versions").unwrap();
        let error = migrate(conn).unwrap_err();
        assert!(matches!(error, MigrateError::ForeignTable(_)), "{name}: {error}");
    }
}

#[test]
fn a_database_in_another_encoding_is_refused() {
    let server = Postgres::server();
    let name = format!("gatun_test_latin1_{}", std::process::id());
    let admin = &mut Conn::establish(&server).unwrap();
    admin
        .batch_execute(&format!(
            "CREATE DATABASE {name} ENCODING 'LATIN1' LC_COLLATE 'C' LC_CTYPE 'C' TEMPLATE template0"
        ))
        .unwrap();
    let _removed = Removed(format!("DROP DATABASE {name} WITH (FORCE)"));
    let (address, options) = server.split_once('?').unwrap_or((&server, ""));
    let (host, _) = address.rsplit_once('/').unwrap();
    let conn = &mut Conn::establish(&format!("{host}/{name}?{options}")).unwrap();
    let error = migrate(conn).unwrap_err();
    assert!(
        matches!(&error, MigrateError::Encoding(encoding) if encoding == "LATIN1"),
        "{error}"
    );
    assert!(error.to_string().contains("ENCODING 'UTF8'"), "{error}");
    let tables = diesel::pg::Pg::existing_tables(conn, &job_db::TABLES).unwrap();
    assert_eq!(tables, Vec::<String>::new());
}
