use super::{Conn, Db};
use diesel::Connection;
use job_db::{Database, DbConnection, MigrateError, TABLES, migrate, schema_version};

type Backend = <Conn as DbConnection>::Db;

fn our_names() -> Vec<&'static str> {
    let mut names = TABLES.to_vec();
    names.extend(["jobs_with_status", "job_schema_versions"]);
    names
}

fn assert_refused_as_foreign(db: &Db, name: &str) {
    let conn = &mut db.connect();
    let error = migrate(conn).unwrap_err();
    assert!(
        matches!(&error, MigrateError::ForeignTable(table) if table == name),
        "{name}: {error}"
    );
    let tables = Backend::existing_tables(conn, &our_names()).unwrap();
    assert_eq!(tables, [name], "nothing else was made");
}

#[test]
fn a_table_of_each_of_our_names_that_is_not_ours() {
    for name in our_names() {
        let db = Db::empty();
        db.execute(&format!("CREATE TABLE {name} (mine INTEGER)"));
        assert_refused_as_foreign(&db, name);
        assert_eq!(db.count(&format!("SELECT count(mine) FROM {name}")), 0);
    }
}

#[test]
fn a_view_of_one_of_our_names() {
    let db = Db::empty();
    db.execute("CREATE TABLE app_work (mine INTEGER); CREATE VIEW jobs AS SELECT * FROM app_work");
    assert_refused_as_foreign(&db, "jobs");
}

#[test]
fn a_schema_that_is_newer_than_the_program() {
    let db = Db::new();
    db.execute(
        "INSERT INTO job_schema_versions (version, applied_at)
         SELECT 999, applied_at FROM job_schema_versions WHERE version = 1;
         DROP VIEW jobs_with_status",
    );
    let conn = &mut db.connect();
    let newest = schema_version(conn).unwrap().1;
    let error = migrate(conn).unwrap_err();
    assert!(
        matches!(error, MigrateError::NewerSchema { database: 999, binary } if binary == newest),
        "{error}"
    );
    let view = Backend::existing_tables(conn, &["jobs_with_status"]).unwrap();
    assert_eq!(view, Vec::<String>::new(), "nothing was made again");
    assert_eq!(db.count("SELECT count(*) FROM job_schema_versions"), 2);
}

#[test]
fn to_run_inside_a_transaction() {
    let db = Db::empty();
    let conn = &mut db.connect();
    let error = conn.transaction(migrate).unwrap_err();
    assert!(matches!(error, MigrateError::InTransaction), "{error}");
    let tables = Backend::existing_tables(conn, &our_names()).unwrap();
    assert_eq!(tables, Vec::<String>::new());
}

#[test]
fn and_migrate_once_the_reason_is_gone() {
    let db = Db::empty();
    let conn = &mut db.connect();
    db.execute("CREATE TABLE jobs (mine INTEGER)");
    migrate(conn).unwrap_err();
    db.execute("DROP TABLE jobs");
    assert!(migrate(conn).unwrap() > 0, "the same connection holds no lock");
}
