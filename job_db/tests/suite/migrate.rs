use super::{Conn, Db};
use job_db::{Database, DbConnection, TABLES, migrate, schema_version};
use std::sync::Barrier;
use std::thread;

type Backend = <Conn as DbConnection>::Db;

#[test]
fn makes_every_table_and_the_view() {
    let db = Db::empty();
    let conn = &mut db.connect();
    let ran = migrate(conn).unwrap();
    assert!(ran > 0);
    for table in TABLES.iter().chain(&["jobs_with_status"]) {
        assert_eq!(db.count(&format!("SELECT count(*) FROM {table}")), 0, "{table}");
    }
    let newest = ran as i64;
    assert_eq!(schema_version(conn).unwrap(), (Some(newest), newest));
}

#[test]
fn tells_that_there_are_no_tables_yet() {
    let db = Db::empty();
    let (current, newest) = schema_version(&mut db.connect()).unwrap();
    assert_eq!(current, None);
    assert!(newest > 0);
}

#[test]
fn does_nothing_the_second_time() {
    let db = Db::new();
    db.execute("INSERT INTO locks (name) VALUES ('kept')");
    assert_eq!(migrate(&mut db.connect()).unwrap(), 0);
    assert_eq!(db.count("SELECT count(*) FROM locks"), 1);
}

#[test]
fn ten_at_once_do_it_one_time() {
    let db = Db::empty();
    let barrier = Barrier::new(10);
    let mut ran: Vec<usize> = thread::scope(|scope| {
        let threads: Vec<_> = (0..10)
            .map(|_| {
                scope.spawn(|| {
                    let conn = &mut db.connect();
                    barrier.wait();
                    migrate(conn).unwrap()
                })
            })
            .collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).collect()
    });
    ran.sort_unstable();
    assert_eq!(ran[..9], [0; 9]);
    assert!(ran[9] > 0);
}

#[test]
fn down_removes_all_and_up_works_again() {
    let db = Db::new();
    let conn = &mut db.connect();
    for migration in Backend::migrations().unwrap().iter().rev() {
        migration.revert(conn).unwrap();
    }
    let mut names = TABLES.to_vec();
    names.extend(["jobs_with_status", "job_schema_versions"]);
    assert_eq!(
        Backend::existing_tables(conn, &names).unwrap(),
        Vec::<String>::new()
    );
    assert!(migrate(conn).unwrap() > 0);
    db.assert_invariants();
}

#[test]
fn leaves_the_apps_own_migrations_alone() {
    let db = Db::empty();
    // The app has a migration of the same version as ours.
    db.execute(
        "CREATE TABLE __diesel_schema_migrations (version VARCHAR(50) PRIMARY KEY, run_on VARCHAR(50));
         INSERT INTO __diesel_schema_migrations VALUES ('00000000000001', 'long ago')",
    );
    assert!(migrate(&mut db.connect()).unwrap() > 0);
    let left = db.texts("SELECT concat_ws(' ', version, run_on) FROM __diesel_schema_migrations");
    assert_eq!(left, [Some("00000000000001 long ago".to_owned())]);
}

#[test]
fn makes_no_books_in_the_apps_name() {
    let db = Db::new();
    let books = Backend::existing_tables(&mut db.connect(), &["__diesel_schema_migrations"]);
    assert_eq!(books.unwrap(), Vec::<String>::new());
}
