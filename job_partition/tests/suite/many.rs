//! More partitions than a statement takes binds.

use super::MANY;
use super::items::{assert_complete, assert_each_done_once, insert, items, key, mark, partition, pending};
use job_partition::Key;
use std::sync::atomic::{AtomicUsize, Ordering};

#[test]
fn tens_of_thousands_of_partitions_are_looked_over() {
    let rows = u64::from(MANY) + 500;
    let db = items(Key::Integer, rows);
    // Most are done already.
    db.execute("UPDATE items SET done = 1 WHERE id NOT IN (-100, -50, 0, 999, 1000)");
    let report = partition(Key::Integer)
        .partitions(MANY)
        .run(&db.manager(), mark)
        .unwrap();
    assert_complete(&report, 5);
    assert_eq!(report.partitions, usize::from(MANY));
    assert_eq!(pending(&db), 0);
}

#[test]
fn rows_that_come_late_are_found_in_any_of_many_partitions() {
    for kind in [Key::Integer, Key::Uuid, Key::Text] {
        let rows = 12_000;
        let db = items(kind, rows);
        // A hundred are to be done; three come late, after all partitions but one.
        db.execute("UPDATE items SET done = 1");
        insert(&db, (rows..rows + 100).map(|number| key(kind, number)));
        let done = AtomicUsize::new(0);
        let report = partition(kind)
            .partitions(700)
            .run(&db.manager(), |batch, conn| {
                mark(batch, conn)?;
                if done.fetch_add(batch.len(), Ordering::Relaxed) + batch.len() == 100 {
                    for number in rows + 100..rows + 103 {
                        diesel::connection::SimpleConnection::batch_execute(
                            conn,
                            &format!(
                                "INSERT INTO items (id, name) VALUES ({}, 'late')",
                                key(kind, number)
                            ),
                        )?;
                    }
                }
                Ok(())
            })
            .unwrap();
        assert_complete(&report, 103);
        assert!(report.partitions > 600, "{report}");
        db.execute("DELETE FROM items WHERE id NOT IN (SELECT item FROM audit)");
        assert_each_done_once(&db, 103);
    }
}
