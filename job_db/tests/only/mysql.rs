use super::{Conn, Db};
use diesel::connection::SimpleConnection;
use diesel::prelude::*;
use diesel::sql_types::BigInt;
use job_db::{Database, Fault, migrate};
use std::sync::Barrier;
use std::thread;

fn fault(error: &diesel::result::Error) -> Fault {
    diesel::mysql::Mysql::fault(error)
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
        conn.batch_execute("BEGIN").unwrap();
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
        "SET SESSION innodb_lock_wait_timeout = 1; UPDATE fought_for SET n = 9 WHERE id = 1",
        "SELECT n FROM fought_for WHERE id = 1 FOR UPDATE NOWAIT",
    ] {
        let error = db.connect().batch_execute(wait).unwrap_err();
        assert_eq!(fault(&error), Fault::Contended, "{error}");
    }
}

#[test]
fn a_prepared_session_speaks_the_language_that_faults_are_read_in() {
    let db = two_rows();
    let holder = &mut db.connect();
    holder.batch_execute("BEGIN").unwrap();
    add_to(holder, 1).unwrap();
    let conn = &mut db.connect();
    conn.batch_execute("SET SESSION lc_messages = 'de_DE'").unwrap();
    diesel::mysql::Mysql::prepare_session(conn, std::time::Duration::from_secs(1)).unwrap();
    let error = add_to(conn, 1).unwrap_err();
    assert_eq!(fault(&error), Fault::Contended, "{error}");
}

#[test]
fn a_statement_that_ran_out_of_time_is_contended() {
    let db = two_rows();
    let conn = &mut db.connect();
    diesel::mysql::Mysql::prepare_session(conn, std::time::Duration::from_secs(1)).unwrap();
    // Ten thousand million rows or more: that takes longer than a second on any machine.
    let many = "information_schema.collations";
    let join =
        format!("SELECT count(*) FROM {many} a CROSS JOIN {many} b CROSS JOIN {many} c CROSS JOIN {many} d");
    let error = diesel::dsl::sql::<BigInt>(&join)
        .get_result::<i64>(conn)
        .unwrap_err();
    assert_eq!(fault(&error), Fault::Contended, "{error}");
}

#[test]
fn a_serialization_failure_is_contended() {
    // At SERIALIZABLE both take a shared lock by reading, and neither gives it up: InnoDB ends one of them.
    let db = two_rows();
    let barrier = Barrier::new(2);
    let read_and_write = || {
        let conn = &mut db.connect();
        conn.batch_execute(
            "SET SESSION TRANSACTION ISOLATION LEVEL SERIALIZABLE; BEGIN; SELECT n FROM fought_for",
        )
        .unwrap();
        barrier.wait();
        let result = add_to(conn, 1);
        conn.batch_execute(if result.is_ok() { "COMMIT" } else { "ROLLBACK" })
            .unwrap();
        result.err()
    };
    let errors: Vec<_> = thread::scope(|scope| {
        let other = scope.spawn(read_and_write);
        [read_and_write(), other.join().unwrap()]
            .into_iter()
            .flatten()
            .collect()
    });
    assert_eq!(errors.len(), 1, "{errors:?}");
    assert_eq!(fault(&errors[0]), Fault::Contended, "{errors:?}");
}

#[test]
fn mariadbs_snapshot_isolation_is_contended() {
    let db = two_rows();
    let conn = &mut db.connect();
    // A comment of this kind is SQL for MariaDB alone, and there from the version that has the setting.
    conn.batch_execute("/*M!101108 SET SESSION innodb_snapshot_isolation = 1 */")
        .unwrap();
    conn.batch_execute(
        "SET SESSION TRANSACTION ISOLATION LEVEL REPEATABLE READ; BEGIN; SELECT n FROM fought_for",
    )
    .unwrap();
    add_to(&mut db.connect(), 1).unwrap();
    // MySQL, and an older MariaDB, let it pass.
    if let Err(error) = add_to(conn, 1) {
        assert_eq!(fault(&error), Fault::Contended, "{error}");
    }
}

#[test]
fn a_killed_connection_is_disconnected() {
    let db = Db::empty();
    for transaction in ["SELECT 1", "BEGIN"] {
        let conn = &mut db.connect();
        conn.batch_execute(transaction).unwrap();
        let id: i64 = diesel::dsl::sql::<BigInt>("SELECT CAST(CONNECTION_ID() AS SIGNED)")
            .get_result(conn)
            .unwrap();
        db.execute(&format!("KILL CONNECTION {id}"));
        for _ in 0..2 {
            let error = conn.batch_execute("SELECT 1").unwrap_err();
            assert_eq!(fault(&error), Fault::Disconnected, "{error}");
        }
    }
}

#[test]
fn a_connection_killed_within_a_statement_is_disconnected() {
    let db = Db::empty();
    let conn = &mut db.connect();
    let id: i64 = diesel::dsl::sql::<BigInt>("SELECT CAST(CONNECTION_ID() AS SIGNED)")
        .get_result(conn)
        .unwrap();
    thread::scope(|scope| {
        let victim = scope.spawn(move || conn.batch_execute("DO SLEEP(60)").unwrap_err());
        job_test::eventually("the statement runs", || {
            db.count(&format!("SELECT count(*) FROM information_schema.processlist WHERE id = {id} AND info LIKE 'DO SLEEP%'")) == 1
        });
        db.execute(&format!("KILL CONNECTION {id}"));
        let error = victim.join().unwrap();
        assert_eq!(fault(&error), Fault::Disconnected, "{error}");
    });
}

#[test]
fn a_session_time_zone_does_not_shift_times() {
    let db = Db::new();
    let shifted = &mut db.connect();
    shifted.batch_execute("SET SESSION time_zone = '+05:45'").unwrap();
    let before = job_db::now(&mut db.connect()).unwrap();
    let time = job_db::now(shifted).unwrap();
    let after = job_db::now(&mut db.connect()).unwrap();
    assert!(before <= time && time <= after, "{before} {time} {after}");
    shifted
        .batch_execute(
            "INSERT INTO workers VALUES (1, '', 1, UTC_TIMESTAMP(6), '2026-01-01 12:00:00', '[]', '[]');
             SET SESSION time_zone = '-05:00'",
        )
        .unwrap();
    for conn in [shifted, &mut db.connect()] {
        let read: chrono::DateTime<chrono::Utc> =
            diesel::dsl::sql::<job_db::Instant>("SELECT beat_at FROM workers")
                .get_result(conn)
                .unwrap();
        assert_eq!(read.to_rfc3339(), "2026-01-01T12:00:00+00:00");
    }
}

/// The first statements of the first migration, as far as an interruption let them come.
fn first_statements(count: usize) -> String {
    let up = include_str!("../../migrations/mysql/00000000000001_gatun/up.sql");
    let statements: Vec<&str> = up.split_inclusive(";\n").take(count).collect();
    statements.concat()
}

#[test]
fn an_interrupted_first_migration_goes_on() {
    // From nothing but the table of versions, to all but the row in it.
    for done in [1, 2, 5, 11] {
        let db = Db::empty();
        db.execute(&first_statements(done));
        assert_eq!(db.count("SELECT count(*) FROM job_schema_versions"), 0);
        assert!(migrate(&mut db.connect()).unwrap() > 0);
        db.assert_invariants();
        assert_eq!(db.count("SELECT count(*) FROM jobs_with_status"), 0);
        assert_eq!(db.count("SELECT max(version) FROM job_schema_versions"), 1);
    }
}

#[test]
fn two_databases_are_migrated_each_for_itself() {
    let (first, second) = (Db::new(), Db::new());
    first.execute("INSERT INTO locks (name) VALUES ('mine')");
    assert_eq!(second.count("SELECT count(*) FROM locks"), 0);
}

#[test]
fn without_a_database_the_error_says_so() {
    let url = std::env::var("MYSQL_DATABASE_URL").unwrap();
    let error = migrate(&mut Conn::establish(&url).unwrap()).unwrap_err();
    assert!(error.to_string().contains("No database selected"), "{error}");
}
