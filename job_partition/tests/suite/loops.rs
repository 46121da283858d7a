//! Closures that would have no end.

use super::items::{Item, items, partition, pending};
use diesel::connection::SimpleConnection;
use job_partition::{Cover, Key, PartitionError};
use std::sync::atomic::{AtomicUsize, Ordering};

#[test]
fn a_closure_that_marks_nothing_is_an_error_and_not_a_loop() {
    for (cover, kind) in super::items::ALL {
        let db = items(kind, 100);
        let error = partition(kind)
            .cover(cover)
            .threads(2)
            .run(&db.manager(), |_: &[Item], _| Ok(()))
            .unwrap_err();
        let PartitionError::NotMarked { pending, .. } = &error else {
            panic!("{error}")
        };
        assert_eq!(pending, "done = 0");
        assert!(
            error.to_string().contains("still meet the condition `done = 0`"),
            "{error}"
        );
    }
}

#[test]
fn a_closure_that_changes_the_key_and_marks_nothing_is_an_error_and_not_a_loop() {
    for cover in [Cover::Range, Cover::Modulo] {
        for change in ["id + 1000", "id - 1000"] {
            let db = items(Key::Integer, 30);
            let error = partition(Key::Integer)
                .cover(cover)
                .partitions(3)
                .batch(20)
                .run(&db.manager(), |batch: &[Item], conn| {
                    let keys: Vec<&str> = batch.iter().map(|item| item.literal.trim_matches('\'')).collect();
                    let keys = keys.join(", ");
                    Ok(conn.batch_execute(&format!("UPDATE items SET id = {change} WHERE id IN ({keys})"))?)
                })
                .unwrap_err();
            assert!(
                matches!(&error, PartitionError::NoEnd { pending: 30, key, .. } if key == "id"),
                "{error}"
            );
            assert!(
                error.to_string().contains("must not change the key \"id\""),
                "{error}"
            );
        }
    }
}

#[test]
fn a_closure_may_remove_rows_and_add_fewer() {
    let db = items(Key::Integer, 1_000);
    let next = AtomicUsize::new(2_000);
    let report = partition(Key::Integer)
        .partitions(3)
        .batch(20)
        .run(&db.manager(), |batch: &[Item], conn| {
            for item in batch {
                let key = item.literal.trim_matches('\'');
                conn.batch_execute(&format!("DELETE FROM items WHERE id = {key}"))?;
                if key.ends_with(['1', '2', '3', '4', '5', '6', '7']) {
                    let id = next.fetch_add(1, Ordering::Relaxed);
                    conn.batch_execute(&format!("INSERT INTO items (id, name) VALUES ({id}, 'new')"))?;
                }
            }
            Ok(())
        })
        .unwrap();
    assert!(report.is_complete(), "{report}");
    assert!(report.rows > 3_000, "{report}");
    assert_eq!(pending(&db), 0);
}
