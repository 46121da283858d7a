//! Rows that come while a run goes on.

use super::items::{ALL, assert_complete, assert_each_done_once, insert, items, key, mark, partition};
use super::{Db, uuid};
use job_partition::Key;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Below all keys that were there at the start, among them, and above.
fn late_keys(kind: Key, number: u64) -> [String; 3] {
    match kind {
        Key::Integer => [
            -1_000 - number as i64,
            number as i64 * 7 - 99,
            100_000 + number as i64,
        ]
        .map(|id| id.to_string()),
        Key::Uuid => [
            uuid(number.into()),
            uuid(1 << 127 | u128::from(number)),
            uuid(u128::MAX - u128::from(number)),
        ],
        Key::Text => [
            format!("'{number}'"),
            format!("'k7{number}-'"),
            format!("'z{number}'"),
        ],
    }
}

#[test]
fn rows_that_others_insert_below_among_and_above_are_done_by_the_same_run() {
    for (cover, kind) in ALL {
        let db = Arc::new(items(kind, 0));
        // With gaps, and in every part of the table.
        let spread = |number: u64| if kind == Key::Integer { number * 7 } else { number };
        insert(&db, (0..120).map(|number| key(kind, spread(number) + 2)));
        let (at, calls) = (Arc::clone(&db), AtomicUsize::new(0));
        // The throttle is asked between batches, when nobody holds anything.
        let others = move || {
            let number = calls.fetch_add(1, Ordering::SeqCst);
            if number % 3 == 1 && number < 12 {
                insert(&at, late_keys(kind, number as u64));
            }
            None
        };
        let report = partition(kind)
            .cover(cover)
            .partitions(5)
            .batch(10)
            .throttle(others)
            .run(&db.manager(), mark)
            .unwrap();
        let inserted = db.count("SELECT count(*) FROM items") - 120;
        assert_eq!(inserted, 12, "{cover:?} {kind:?}");
        assert_complete(&report, 132);
        assert_each_done_once(&db, 132);
    }
}

#[test]
fn rows_that_are_inserted_after_the_end_are_a_later_runs() {
    let db: Db = items(Key::Integer, 50);
    assert_complete(&partition(Key::Integer).run(&db.manager(), mark).unwrap(), 50);
    insert(&db, ["-2000", "5000"].map(str::to_owned));
    assert_complete(&partition(Key::Integer).run(&db.manager(), mark).unwrap(), 2);
    assert_each_done_once(&db, 52);
}
