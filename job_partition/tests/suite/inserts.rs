//! Rows that come and go while a run goes on.

use super::items::{
    ALL, Item, assert_complete, assert_each_done_once, has, insert, items, key, mark, partition,
};
use super::{Conn, Db, uuid};
use diesel::connection::SimpleConnection;
use job_partition::{Key, Outcome, Pause};
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

/// A throttle that never holds up. It is asked between batches, when nobody holds anything, and lets others do something then:
/// in every third place, up to the twelfth, with the place's number.
fn four_times(others: impl Fn(u64)) -> impl Fn() -> Option<Pause> {
    let calls = AtomicUsize::new(0);
    move || {
        let number = calls.fetch_add(1, Ordering::SeqCst);
        if number % 3 == 1 && number < 12 {
            others(number as u64);
        }
        None
    }
}

#[test]
fn rows_that_others_insert_below_among_and_above_are_done_by_the_same_run() {
    for (cover, kind) in ALL {
        let db = Arc::new(items(kind, 0));
        // With gaps, and in every part of the table.
        let spread = |number: u64| if kind == Key::Integer { number * 7 } else { number };
        insert(&db, (0..120).map(|number| key(kind, spread(number) + 2)));
        let at = Arc::clone(&db);
        let others = four_times(move |number| insert(&at, late_keys(kind, number)));
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

/// Does items as those of a queue: what is done is gone.
fn take(batch: &[Item], conn: &mut Conn) -> anyhow::Result<()> {
    mark(batch, conn)?;
    Ok(conn.batch_execute("DELETE FROM items WHERE done = 1")?)
}

#[test]
fn of_a_queue_each_row_that_nobody_takes_away_is_done_once() {
    for (cover, kind) in ALL {
        let db = Arc::new(items(kind, 200));
        let at = Arc::clone(&db);
        let others = four_times(move |number| {
            insert(&at, late_keys(kind, number + 300));
            // One that is there, and one that is not, is taken away by others.
            at.execute(&format!(
                "DELETE FROM items WHERE id IN ({}, {})",
                key(kind, 199 - number),
                key(kind, 900)
            ));
        });
        let report = partition(kind)
            .cover(cover)
            .partitions(5)
            .batch(10)
            .throttle(others)
            .run(&db.manager(), take)
            .unwrap();
        assert!(report.is_complete(), "{report}");
        assert!((208..=212).contains(&report.rows), "{report}");
        let count = |what: &str| db.count(&format!("SELECT count({what}) FROM audit")) as u64;
        assert_eq!((count("*"), count("DISTINCT item")), (report.rows, report.rows));
        assert_eq!(db.count("SELECT count(*) FROM items"), 0);
    }
}

/// Keys that are used again, as SQLite does without AUTOINCREMENT, are those of the rows that had them.
#[test]
fn a_row_that_comes_with_the_key_of_one_that_failed_is_a_later_runs() {
    let db = Arc::new(items(Key::Integer, 30));
    let other = Arc::clone(&db);
    let is_replaced = AtomicUsize::new(0);
    let report = partition(Key::Integer)
        .batch(10)
        .partitions(1)
        .throttle(move || {
            // The last batch is done; the row that failed is still there.
            if other.count("SELECT count(*) FROM items") == 1
                && is_replaced.fetch_add(1, Ordering::SeqCst) == 0
            {
                other.execute("DELETE FROM items; INSERT INTO items (id, name) VALUES (-95, 'new')");
            }
            None
        })
        .run(&db.manager(), |batch: &[Item], conn: &mut Conn| {
            anyhow::ensure!(!has(batch, -95), "poison");
            take(batch, conn)
        })
        .unwrap();
    assert_eq!(
        report.outcome,
        Outcome::Incomplete { busy: 0, failed: 1 },
        "{report}"
    );
    assert_eq!(db.count("SELECT count(*) FROM items WHERE name = 'new'"), 1);
    assert_complete(&partition(Key::Integer).run(&db.manager(), take).unwrap(), 1);
}
