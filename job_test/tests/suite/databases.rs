use super::Db;
use diesel::Connection;
use diesel::connection::SimpleConnection;
use std::panic::{AssertUnwindSafe, catch_unwind};

/// Whether there is still a place behind the URL that holds Gatun's tables.
fn has_tables<C: Connection>(_like: &C, url: &str) -> bool {
    // SQLite would make a new file.
    if url.starts_with('/') && !std::path::Path::new(url).exists() {
        return false;
    }
    C::establish(url).is_ok_and(|mut conn| conn.batch_execute("SELECT count(*) FROM locks").is_ok())
}

#[test]
fn each_has_its_own() {
    let (first, second) = (Db::new(), Db::new());
    first.execute("INSERT INTO locks (name) VALUES ('mine')");
    assert_eq!(first.count("SELECT count(*) FROM locks"), 1);
    assert_eq!(second.count("SELECT count(*) FROM locks"), 0);
    first.assert_invariants();
}

#[test]
fn it_goes_with_the_value() {
    let db = Db::new();
    let url = db.url().to_owned();
    let conn = db.connect();
    assert!(has_tables(&conn, &url));
    drop(db);
    assert!(!has_tables(&conn, &url));
}

#[test]
fn it_goes_when_the_test_panics() {
    let db = Db::new();
    let url = db.url().to_owned();
    let conn = db.connect();
    let result = catch_unwind(AssertUnwindSafe(|| {
        let _db = db;
        panic!("the test has failed");
    }));
    assert!(result.is_err());
    assert!(!has_tables(&conn, &url));
}

#[test]
fn a_pool_reaches_it() {
    let db = Db::new();
    let pool = db.pool(2);
    let (mut first, mut second) = (pool.get().unwrap(), pool.get().unwrap());
    first
        .batch_execute("INSERT INTO locks (name) VALUES ('one')")
        .unwrap();
    second
        .batch_execute("INSERT INTO locks (name) VALUES ('two')")
        .unwrap();
    assert_eq!(db.count("SELECT count(*) FROM locks"), 2);
}

#[test]
fn texts_and_numbers_are_read() {
    let db = Db::new();
    assert_eq!(db.text("SELECT owner FROM locks"), None);
    db.execute("INSERT INTO locks (name, owner) VALUES ('a', 'x'), ('b', NULL)");
    assert_eq!(
        db.texts("SELECT owner FROM locks ORDER BY name"),
        [Some("x".to_owned()), None]
    );
    assert_eq!(db.text("SELECT owner FROM locks WHERE name = 'b'"), None);
    assert_eq!(db.bigints("SELECT token FROM locks"), [0, 0]);
}
