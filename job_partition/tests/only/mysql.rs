use super::Db;
use super::suite::items::{
    assert_circle, assert_complete, assert_each_done_once, insert, items, mark, partition, pending,
};
use diesel::connection::SimpleConnection;
use job_partition::{Key, Outcome, PartitionError};
use std::sync::Barrier;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Flaw 2 of "a worker is a number", to the letter: its names were the numbers from 0, of the whole server.
#[test]
fn flaw_locks_of_others_named_by_numbers_are_in_nobodys_way() {
    let db = items(Key::Integer, 300);
    let other = &mut db.connect();
    for number in 0..65 {
        other
            .batch_execute(&format!("DO GET_LOCK('{number}', 0)"))
            .unwrap();
    }
    assert_complete(&partition(Key::Integer).run(&db.manager(), mark).unwrap(), 300);
    assert_each_done_once(&db, 300);
}

#[test]
fn the_lock_is_freed_after_each_batch() {
    let db = items(Key::Integer, 100);
    let manager = db.manager();
    assert_complete(
        &partition(Key::Integer).batch(10).run(&manager, mark).unwrap(),
        100,
    );
    // A second run on new sessions has all partitions at once.
    db.execute("UPDATE items SET done = 0; DELETE FROM audit");
    assert_complete(
        &partition(Key::Integer).batch(10).run(&manager, mark).unwrap(),
        100,
    );
}

/// A deadlock rolls the whole transaction back there, and what comes after it is committed statement by statement.
#[test]
fn a_deadlock_that_the_closure_swallows_is_a_failure_of_its_rows() {
    let db = items(Key::Integer, 20);
    db.execute(
        "CREATE TABLE shared (id INT PRIMARY KEY, n INT NOT NULL); INSERT INTO shared VALUES (1, 0), (2, 0)",
    );
    let (meet, calls, swallowed) = (Barrier::new(2), AtomicUsize::new(0), AtomicUsize::new(0));
    let report = partition(Key::Integer)
        .partitions(2)
        .threads(2)
        .run(&db.manager(), |batch, conn| {
            let number = calls.fetch_add(1, Ordering::SeqCst);
            let order = if number % 2 == 0 { [1, 2] } else { [2, 1] };
            conn.batch_execute(&format!("UPDATE shared SET n = n + 1 WHERE id = {}", order[0]))?;
            if number < 2 {
                meet.wait();
            }
            let update = format!("UPDATE shared SET n = n + 1 WHERE id = {}", order[1]);
            if conn.batch_execute(&update).is_err() {
                swallowed.fetch_add(batch.len(), Ordering::SeqCst);
            }
            mark(batch, conn)
        })
        .unwrap();
    let failed = swallowed.load(Ordering::SeqCst);
    assert!(failed > 0);
    assert_eq!(
        report.outcome,
        Outcome::Incomplete { busy: 0, failed },
        "{report}"
    );
    assert_eq!(report.rows, 20 - failed as u64);
    assert_eq!(pending(&db), 0, "what came after the deadlock is committed");
}

/// They are sent in binary, or are compared in one way and sorted in another.
#[test]
fn a_column_of_a_type_that_is_no_such_key_is_refused_and_what_is_one_is_named() {
    for (key, kind, accepted) in [
        (Key::Text, "BIGINT", "CHAR, VARCHAR"),
        (Key::Text, "DATE", "CHAR, VARCHAR"),
        (Key::Text, "DOUBLE", "CHAR, VARCHAR"),
        (Key::Text, "TINYINT UNSIGNED", "CHAR, VARCHAR"),
        (Key::Text, "ENUM('b', 'a')", "CHAR, VARCHAR"),
        (Key::Text, "SET('b', 'a')", "CHAR, VARCHAR"),
        (Key::Text, "BIT(8)", "CHAR, VARCHAR"),
        (Key::Integer, "ENUM('2', '1')", "TINYINT to BIGINT"),
        (Key::Integer, "SET('2', '1')", "TINYINT to BIGINT"),
        (Key::Integer, "BIT(8)", "TINYINT to BIGINT"),
        (Key::Integer, "VARCHAR(9)", "TINYINT to BIGINT"),
        (Key::Integer, "DOUBLE", "TINYINT to BIGINT"),
        (Key::Uuid, "CHAR(36)", "BINARY(16)"),
        (Key::Uuid, "BIT(8)", "BINARY(16)"),
    ] {
        let db = Db::empty();
        db.execute(&format!(
            "CREATE TABLE items (id {kind} PRIMARY KEY, name VARCHAR(60), done INT)"
        ));
        let error = partition(key).run(&db.manager(), mark).unwrap_err();
        assert!(
            matches!(&error, PartitionError::WrongKey { key: name, expected, .. } if name == "id" && *expected == key),
            "{kind}: {error}"
        );
        let error = error.to_string();
        let said = format!("what Key::{key:?} stands for, which is {accepted}");
        assert!(error.contains(&said), "{error}");
    }
}

/// Keys that a connection reads with a loss are equal, and greater than what they are read as.
#[test]
fn keys_that_lead_in_a_circle_are_an_error_and_not_a_loop() {
    let db = items(Key::Text, 0);
    let letters = ('\u{4e00}'..).take(40);
    insert(&db, letters.map(|letter| format!("'{letter}'")));
    assert_circle(&db, |conn| {
        conn.batch_execute("SET character_set_results = latin1")
    });
}

#[test]
fn bytes_that_are_no_text_are_a_wrong_key() {
    let db = Db::empty();
    db.execute("CREATE TABLE items (id VARBINARY(9) PRIMARY KEY, name VARCHAR(60), done INT NOT NULL)");
    db.execute("INSERT INTO items VALUES (x'ff00', 'item', 0)");
    let error = partition(Key::Text).run(&db.manager(), mark).unwrap_err();
    assert!(matches!(error, PartitionError::WrongKey { .. }), "{error}");
}

#[test]
fn a_view_whose_rows_would_not_be_locked_is_refused() {
    let db = items(Key::Integer, 10);
    for view in [
        "CREATE ALGORITHM = TEMPTABLE VIEW copies AS SELECT * FROM items",
        "CREATE VIEW copies AS SELECT DISTINCT * FROM items",
        "CREATE VIEW copies AS SELECT * FROM items UNION ALL SELECT * FROM items",
    ] {
        db.execute(view);
        let error = job_partition::Partition::of("copies")
            .key_is_unique()
            .pending("done = 0")
            .columns("CAST(id AS char(9)) AS literal, name")
            .run(&db.manager(), mark)
            .unwrap_err();
        assert!(
            matches!(&error, PartitionError::NoRowLocks(view) if view == "copies"),
            "{error}"
        );
        assert_eq!(pending(&db), 10);
        db.execute("DROP VIEW copies");
    }
}

#[test]
fn types_of_mariadb_that_are_compared_as_they_are_read_are_texts() {
    for (key_type, value) in [
        ("UUID", "INSERT(INSERT(MD5(seq), 13, 1, '4'), 17, 1, '8')"),
        ("INET6", "CONCAT('fe80::', HEX(seq * 397))"),
        ("INET4", "CONCAT('10.', seq, '.', 200 - seq, '.1')"),
    ] {
        let db = Db::empty();
        let table = format!(
            "CREATE TABLE items (id {key_type} PRIMARY KEY, name VARCHAR(60), done INT NOT NULL DEFAULT 0)"
        );
        // MySQL has none of them, and versions of MariaDB lack some.
        if db.connect().batch_execute(&table).is_err() {
            continue;
        }
        db.execute(&format!(
            "CREATE TABLE audit (item {key_type} NOT NULL, worker VARCHAR(60) NOT NULL);
             INSERT INTO items (id, name) SELECT {value}, 'item' FROM seq_1_to_150"
        ));
        let report = partition(Key::Text)
            .batch(10)
            .partitions(8)
            .run(&db.manager(), mark)
            .unwrap();
        assert_complete(&report, 150);
        assert_each_done_once(&db, 150);
    }
}
