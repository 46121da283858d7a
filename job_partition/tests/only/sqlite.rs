use super::Db;
use super::suite::items::{
    Item, assert_circle, assert_complete, insert, items, make_tables, mark, partition, pending,
};
use diesel::connection::SimpleConnection;
use job_partition::{Cover, Key, PartitionError};
use std::cmp::Ordering;

#[track_caller]
fn assert_class(error: &PartitionError, class: &str) {
    assert!(
        matches!(error, PartitionError::WrongKey { key, .. } if key == "id"),
        "{error}"
    );
    let said = format!("the key \"id\" with a value of class {class} is not what");
    assert!(error.to_string().contains(&said), "{error}");
}

#[test]
fn the_keys_name_may_be_written_otherwise() {
    let db = items(Key::Integer, 20);
    let report = partition(Key::Integer)
        .key("ID", Key::Integer)
        .run(&db.manager(), mark)
        .unwrap();
    assert_complete(&report, 20);
}

/// Values of different classes are compared by their class alone, whatever they are read as.
#[test]
fn a_key_of_another_class_is_refused() {
    for (kind, key_type, value, class) in [
        (Key::Text, "TEXT", "CAST(printf('k%d', n) AS blob)", "blob"),
        (Key::Text, "", "n", "integer"),
        (Key::Integer, "TEXT", "n", "text"),
        (Key::Integer, "", "CAST(n AS text)", "text"),
        (Key::Integer, "", "CAST(CAST(n AS text) AS blob)", "blob"),
        (Key::Integer, "", "n + 0.5", "real"),
        (Key::Uuid, "", "printf('%016d', n)", "text"),
    ] {
        for cover in [Cover::Range, Cover::Modulo] {
            let db = Db::empty();
            db.execute(&format!(
                "CREATE TABLE items (id {key_type} PRIMARY KEY, name TEXT, done INT NOT NULL DEFAULT 0);
                 WITH RECURSIVE numbers(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM numbers WHERE n < 60)
                 INSERT INTO items (id, name) SELECT {value}, 'item' FROM numbers"
            ));
            let error = partition(kind)
                .cover(cover)
                .batch(2)
                .run(&db.manager(), |_: &[Item], _| anyhow::bail!("poison"))
                .unwrap_err();
            assert_class(&error, class);
        }
    }
}

#[test]
fn one_key_of_another_class_is_enough_also_while_the_run_goes_on() {
    for cover in [Cover::Range, Cover::Modulo] {
        let db = items(Key::Text, 200);
        db.execute("INSERT INTO items (id, name) VALUES (x'41', 'item')");
        let run = || {
            partition(Key::Text)
                .cover(cover)
                .partitions(2)
                .batch(10)
                .run(&db.manager(), |batch: &[Item], conn| {
                    conn.batch_execute("INSERT OR IGNORE INTO items (id, name) VALUES (x'42', 'item')")?;
                    mark(batch, conn)
                })
                .unwrap_err()
        };
        assert_class(&run(), "blob");
        assert_eq!(pending(&db), 201, "nothing was begun");
        db.execute("DELETE FROM items WHERE id = x'41'");
        assert_class(&run(), "blob");
    }
}

#[test]
fn an_integer_of_a_text_column_is_text_there() {
    let db = Db::empty();
    make_tables(&db, Key::Text);
    insert(&db, (0..50).map(|number: i64| number.to_string()));
    assert_complete(&partition(Key::Text).run(&db.manager(), mark).unwrap(), 50);
}

/// A collation is the app's own code.
#[test]
fn keys_that_lead_in_a_circle_are_an_error_and_not_a_loop() {
    let db = Db::empty();
    let prepare = |conn: &mut super::Conn| conn.register_collation("odd", |_, _| Ordering::Greater);
    let conn = &mut db.connect();
    prepare(conn).unwrap();
    conn.batch_execute(
        "CREATE TABLE items (id TEXT COLLATE odd, name TEXT, done INT NOT NULL DEFAULT 0);
         WITH RECURSIVE numbers(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM numbers WHERE n < 60)
         INSERT INTO items (id, name) SELECT printf('k%d', n), 'item' FROM numbers",
    )
    .unwrap();
    assert_circle(&db, prepare);
}

#[test]
fn an_index_over_some_rows_makes_no_key_unique_and_the_rowid_does() {
    for tables in [
        "CREATE TABLE items (id BIGINT NOT NULL, done INT); CREATE UNIQUE INDEX some ON items (id) WHERE done = 1",
        "CREATE TABLE items (id BIGINT NOT NULL, done INT); CREATE UNIQUE INDEX some ON items (abs(id))",
        "CREATE TABLE others (id BIGINT PRIMARY KEY, done INT); CREATE VIEW items AS SELECT * FROM others",
    ] {
        let db = Db::empty();
        db.execute(tables);
        let error = partition(Key::Integer).run(&db.manager(), mark).unwrap_err();
        assert!(matches!(error, PartitionError::NotUnique { .. }), "{error}");
    }
    for name in ["items", "main.items"] {
        for key in ["id INTEGER PRIMARY KEY", "id INTEGER UNIQUE"] {
            let db = Db::empty();
            db.execute(&format!("CREATE TABLE items ({key}, name TEXT, done INT)"));
            let partition = job_partition::Partition::of(name)
                .pending("done = 0")
                .columns("'' AS literal, name");
            assert_complete(&partition.run(&db.manager(), mark).unwrap(), 0);
        }
    }
}

/// Each batch begins with an UPDATE of no row, for the file's write lock.
#[test]
fn a_view_needs_a_trigger_in_place_of_updates() {
    let db = items(Key::Integer, 100);
    db.execute("CREATE VIEW odd_items AS SELECT * FROM items WHERE id % 2 <> 0");
    let run = || {
        job_partition::Partition::of("odd_items")
            .key_is_unique()
            .pending("done = 0")
            .columns("quote(id) AS literal, name")
            .partitions(4)
            .threads(2)
            .run(&db.manager(), mark)
    };
    let error = run().unwrap_err();
    assert!(
        error
            .to_string()
            .contains("cannot modify odd_items because it is a view"),
        "{error}"
    );
    db.execute(
        "CREATE TRIGGER instead INSTEAD OF UPDATE ON odd_items
         BEGIN SELECT RAISE(ABORT, 'no row is changed by it'); END",
    );
    assert_complete(&run().unwrap(), 50);
    assert_eq!(pending(&db), 50);
}
