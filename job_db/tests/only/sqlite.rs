use super::Db;
use diesel::connection::SimpleConnection;
use diesel::prelude::*;
use diesel::sql_types::BigInt;
use diesel::sqlite::Sqlite;
use job_db::{Database, Fault, migrate};
use std::time::Duration;

const WRITE: &str = "INSERT INTO locks (name) SELECT 'lock ' || count(*) FROM locks";

#[test]
fn a_busy_file_is_contended() {
    let db = Db::new();
    let holder = &mut db.connect();
    holder.batch_execute("BEGIN IMMEDIATE").unwrap();
    let conn = &mut db.connect();
    conn.batch_execute("PRAGMA busy_timeout = 20").unwrap();
    for sql in [WRITE, "BEGIN IMMEDIATE", "CREATE TABLE other (id INTEGER)"] {
        let error = conn.batch_execute(sql).unwrap_err();
        assert_eq!(Sqlite::fault(&error), Fault::Contended, "{error}");
    }
}

#[test]
fn a_write_after_a_read_that_has_gone_stale_is_contended() {
    let db = Db::new();
    let conn = &mut db.connect();
    conn.batch_execute("BEGIN; SELECT count(*) FROM locks").unwrap();
    db.execute(WRITE);
    let error = conn.batch_execute(WRITE).unwrap_err();
    assert_eq!(Sqlite::fault(&error), Fault::Contended, "{error}");
}

#[test]
fn a_prepared_session_reads_while_another_writes() {
    let db = Db::empty();
    db.execute("PRAGMA journal_mode = DELETE");
    let conn = &mut db.connect();
    Sqlite::prepare_session(conn, Duration::from_millis(20)).unwrap();
    migrate(conn).unwrap();
    let writer = &mut db.connect();
    writer
        .batch_execute(&format!("BEGIN IMMEDIATE; {WRITE}"))
        .unwrap();
    conn.batch_execute("SELECT count(*) FROM locks").unwrap();
}

#[test]
fn a_database_in_memory_is_migrated() {
    let conn = &mut SqliteConnection::establish(":memory:").unwrap();
    assert!(migrate(conn).unwrap() > 0);
    assert_eq!(migrate(conn).unwrap(), 0);
}

#[test]
fn migrate_leaves_the_apps_settings_as_they_were() {
    let db = Db::empty();
    let conn = &mut db.connect();
    conn.batch_execute("PRAGMA busy_timeout = 1234").unwrap();
    let busy_timeout = |conn: &mut SqliteConnection| {
        let query = "SELECT timeout FROM pragma_busy_timeout";
        diesel::dsl::sql::<BigInt>(query).get_result::<i64>(conn).unwrap()
    };
    migrate(conn).unwrap();
    assert_eq!(busy_timeout(conn), 1234);
    db.execute("UPDATE job_schema_versions SET version = 999");
    migrate(conn).unwrap_err();
    assert_eq!(busy_timeout(conn), 1234);
}
