//! What takes a server: sessions that end, locks of others, deadlocks.

use super::suite::items::{
    Item, assert_complete, assert_each_done_once, complete_beside_a_locked_row, cut, has, items, key,
    make_tables, mark, partition, session,
};
use super::{Conn, Db};
use diesel::connection::SimpleConnection;
use job_partition::{Key, Outcome};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Barrier, Mutex};
use std::time::Duration;

/// Flaw 3 of "a worker is a number": the lock went with the session, silently, while the worker went on.
#[test]
fn flaw_a_lost_lock_takes_the_work_with_it() {
    let db = items(Key::Integer, 500);
    let killed = AtomicUsize::new(0);
    let report = partition(Key::Integer)
        .batch(50)
        .threads(2)
        .run(&db.manager(), |batch, conn: &mut Conn| {
            mark(batch, conn)?;
            // The worker does not notice before the COMMIT.
            if (has(batch, 0) || has(batch, 300)) && killed.fetch_add(1, Ordering::SeqCst) < 4 {
                cut(&db, session(conn)?);
            }
            Ok(())
        })
        .unwrap();
    assert!(killed.load(Ordering::SeqCst) >= 4);
    assert!(report.retries >= 4, "{report}");
    assert_complete(&report, 500);
    assert_each_done_once(&db, 500);
}

/// Flaw 2 of "a worker is a number": the key was shared with everyone on that database.
#[test]
fn flaw_another_table_or_another_name_has_other_locks() {
    let db = items(Key::Integer, 50);
    db.execute("CREATE TABLE others (id BIGINT PRIMARY KEY, done INT NOT NULL)");
    db.execute("INSERT INTO others SELECT id, 0 FROM items");
    // The only partition of `items` is held, from within a batch, until the others are complete.
    let report = partition(Key::Integer)
        .partitions(1)
        .run(&db.manager(), |batch, conn| {
            let mut report = job_partition::Partition::of("others")
                .pending("done = 0")
                .columns("'x' AS literal, 'y' AS name")
                .partitions(1)
                .run(&db.manager(), |_: &[Item], conn: &mut Conn| {
                    Ok(conn.batch_execute("UPDATE others SET done = 1")?)
                })?;
            assert_complete(&report, 50);
            // The rows are held as well: another name has the lock, and finds nothing to do but to wait.
            report = partition(Key::Integer)
                .partitions(1)
                .name("another")
                .patience(Duration::ZERO)
                .run(&db.manager(), mark)?;
            assert_eq!(report.outcome, Outcome::Incomplete { busy: 1, failed: 0 });
            assert_eq!(report.rows, 0);
            mark(batch, conn)
        })
        .unwrap();
    assert_complete(&report, 50);
    assert_each_done_once(&db, 50);
}

#[test]
fn a_partition_is_one_workers_for_a_batch_and_free_for_others_between() {
    let db = items(Key::Integer, 100);
    let batches = Mutex::new(Vec::new());
    let report = partition(Key::Integer)
        .partitions(1)
        .batch(50)
        .run(&db.manager(), |batch, conn| {
            let inner = partition(Key::Integer)
                .partitions(1)
                .patience(Duration::ZERO)
                .run(&db.manager(), mark)?;
            batches.lock().unwrap().push(inner.rows);
            assert_eq!(
                inner.outcome,
                Outcome::Incomplete { busy: 1, failed: 0 },
                "the lock is held"
            );
            mark(batch, conn)
        })
        .unwrap();
    assert_complete(&report, 100);
    assert_eq!(*batches.lock().unwrap(), [0, 0]);
    assert_each_done_once(&db, 100);
}

#[test]
fn a_worker_that_arrives_takes_part_at_the_next_batch() {
    let db = items(Key::Integer, 1_000);
    let (arrived, go) = (Barrier::new(2), Mutex::new(true));
    let (first, second) = std::thread::scope(|scope| {
        let second = scope.spawn(|| {
            arrived.wait();
            partition(Key::Integer)
                .batch(10)
                .run(&db.manager(), mark)
                .unwrap()
        });
        let first = partition(Key::Integer)
            .batch(10)
            .run(&db.manager(), |batch, conn| {
                if std::mem::take(&mut *go.lock().unwrap()) {
                    arrived.wait();
                }
                // As long as nobody else has done anything, this one lets them.
                let others = || db.count("SELECT count(*) FROM audit") > 0;
                job_test::eventually("the other one does a batch", others);
                mark(batch, conn)
            })
            .unwrap();
        (first, second.join().unwrap())
    });
    assert!(first.is_complete() && second.is_complete(), "{first}\n{second}");
    assert!(second.rows > 0);
    assert_eq!(first.rows + second.rows, 1_000);
    assert_each_done_once(&db, 1_000);
}

#[test]
fn a_deadlock_between_two_batches_is_tried_again() {
    let db = items(Key::Integer, 200);
    db.execute("CREATE TABLE shared (id INT PRIMARY KEY, n INT NOT NULL)");
    db.execute("INSERT INTO shared VALUES (1, 0), (2, 0)");
    let (meet, calls) = (Barrier::new(2), AtomicUsize::new(0));
    let report = partition(Key::Integer)
        .partitions(2)
        .batch(500)
        .threads(2)
        .run(&db.manager(), |batch, conn| {
            let number = calls.fetch_add(1, Ordering::SeqCst);
            let order = if number % 2 == 0 { [1, 2] } else { [2, 1] };
            conn.batch_execute(&format!("UPDATE shared SET n = n + 1 WHERE id = {}", order[0]))?;
            if number < 2 {
                meet.wait();
            }
            conn.batch_execute(&format!("UPDATE shared SET n = n + 1 WHERE id = {}", order[1]))?;
            mark(batch, conn)
        })
        .unwrap();
    assert_complete(&report, 200);
    assert_eq!(report.retries, 1, "{report}");
    assert_each_done_once(&db, 200);
    assert_eq!(
        db.count("SELECT count(*) FROM shared WHERE n = 2"),
        2,
        "what was rolled back was done again"
    );
}

#[test]
fn a_row_that_somebody_has_locked_is_passed_over_and_done_when_it_is_free() {
    let db = items(Key::Integer, 100);
    complete_beside_a_locked_row(&db, -50, &partition(Key::Integer).partitions(3), 99);
    assert_each_done_once(&db, 100);
}

#[test]
fn keys_are_taken_in_the_order_of_the_columns_own_collation() {
    let db = Db::empty();
    make_tables(&db, Key::Text);
    let insensitive = if db.url().starts_with("mysql") {
        "utf8mb4_general_ci"
    } else {
        "\"C\""
    };
    let sql = if db.url().starts_with("mysql") {
        format!(
            "ALTER TABLE items MODIFY id VARCHAR(60) CHARACTER SET utf8mb4 COLLATE {insensitive} NOT NULL"
        )
    } else {
        format!("ALTER TABLE items ALTER id TYPE VARCHAR(60) COLLATE {insensitive}")
    };
    db.execute(&sql);
    let keys = [
        "a", "B", "c", "Z", "z1", "é", "ß", "", "ÿ", "ab", "A1", "_", "-", "日本",
    ];
    super::suite::items::insert(&db, keys.iter().map(|key| format!("'{key}'")));
    super::suite::items::insert(&db, (0..500).map(|number| key(Key::Text, number)));
    let report = partition(Key::Text)
        .batch(3)
        .threads(2)
        .run(&db.manager(), mark)
        .unwrap();
    assert_complete(&report, 500 + keys.len() as u64);
    assert_each_done_once(&db, 500 + keys.len() as u64);
}

/// Whoever inserts and commits after the last look has inserted after the end.
#[test]
fn rows_whose_insert_is_not_committed_at_the_last_look_are_a_later_runs() {
    let db = items(Key::Integer, 50);
    let other = &mut db.connect();
    other
        .batch_execute("BEGIN; INSERT INTO items (id, name) VALUES (-2000, 'late'), (5000, 'late')")
        .unwrap();
    let run = || {
        partition(Key::Integer)
            .partitions(4)
            .run(&db.manager(), mark)
            .unwrap()
    };
    assert_complete(&run(), 50);
    other.batch_execute("COMMIT").unwrap();
    assert_complete(&run(), 2);
    assert_each_done_once(&db, 52);
}
