use super::items::{
    ALL, assert_complete, assert_each_done_once, insert, items, make_tables, mark, partition,
};
use super::{Db, uuid};
use job_partition::{Cover, Key, KeyValue, Partition};
use std::collections::HashSet;
use std::sync::Mutex;

const COVERS: [Cover; 2] = [Cover::Range, Cover::Modulo];

/// Flaw 1 of "a worker is a number": with fewer than N processes the other slots' rows were never worked.
#[test]
fn flaw_fewer_workers_than_partitions_leave_no_row_behind() {
    for (cover, kind) in ALL {
        let db = items(kind, 700);
        let report = partition(kind)
            .cover(cover)
            .batch(50)
            .run(&db.manager(), mark)
            .unwrap();
        assert!(report.partitions > 30, "{report}");
        assert_complete(&report, 700);
        assert_each_done_once(&db, 700);
    }
}

/// Flaw 5 of "a worker is a number": a negative id fell in no slot.
#[test]
fn flaw_negative_ids_have_a_partition_too() {
    for cover in COVERS {
        let db = Db::empty();
        make_tables(&db, Key::Integer);
        let extremes = [i64::MIN, i64::MIN + 1, -64, -63, 0, 63, i64::MAX - 1, i64::MAX];
        insert(
            &db,
            extremes
                .iter()
                .map(i64::to_string)
                .chain((-1000..-500).map(|id| id.to_string())),
        );
        let report = partition(Key::Integer)
            .cover(cover)
            .threads(2)
            .run(&db.manager(), mark)
            .unwrap();
        assert_complete(&report, 508);
        assert_each_done_once(&db, 508);
    }
}

#[test]
fn threads_share_the_rows_with_both_covers_and_all_keys() {
    for (cover, kind) in ALL {
        let db = items(kind, 2_000);
        let report = partition(kind)
            .cover(cover)
            .batch(30)
            .threads(4)
            .run(&db.manager(), mark)
            .unwrap();
        assert_complete(&report, 2_000);
        assert_each_done_once(&db, 2_000);
    }
}

#[test]
fn an_empty_table_is_complete() {
    for (cover, kind) in ALL {
        let db = items(kind, 0);
        let report = partition(kind)
            .cover(cover)
            .threads(2)
            .run(&db.manager(), mark)
            .unwrap();
        assert_complete(&report, 0);
    }
}

#[test]
fn a_table_of_one_row_is_complete() {
    for (cover, kind) in ALL {
        let db = items(kind, 1);
        let report = partition(kind).cover(cover).run(&db.manager(), mark).unwrap();
        assert_complete(&report, 1);
        assert_each_done_once(&db, 1);
    }
}

#[test]
fn gaps_between_keys_cost_no_partition() {
    let db = Db::empty();
    make_tables(&db, Key::Integer);
    // Three clusters, far apart and of different density.
    let ids = (0..1000)
        .chain((0..300).map(|n| 1_i64 << 40 | n << 20))
        .chain((0..500).map(|n| i64::MAX - 2 * n));
    insert(&db, ids.map(|id| id.to_string()));
    let largest = Mutex::new(0);
    let report = partition(Key::Integer)
        .partitions(16)
        .batch(5_000)
        .run(&db.manager(), |batch, conn| {
            let mut largest = largest.lock().unwrap();
            *largest = batch.len().max(*largest);
            mark(batch, conn)
        })
        .unwrap();
    assert_complete(&report, 1800);
    assert_eq!(report.partitions, 16);
    assert!(
        *largest.lock().unwrap() <= 300,
        "no partition has most of the rows"
    );
}

#[test]
fn the_ends_of_uuids_belong_to_partitions() {
    for cover in COVERS {
        let db = Db::empty();
        make_tables(&db, Key::Uuid);
        insert(&db, [0, 1, 1 << 127, u128::MAX - 1, u128::MAX].map(uuid));
        assert_complete(
            &partition(Key::Uuid)
                .cover(cover)
                .run(&db.manager(), mark)
                .unwrap(),
            5,
        );
    }
}

#[test]
fn rows_come_in_the_order_of_the_key_and_no_batch_is_larger_than_was_said() {
    let db = items(Key::Integer, 100);
    let seen = Mutex::new(Vec::new());
    let report = partition(Key::Integer)
        .partitions(1)
        .batch(7)
        .run(&db.manager(), |batch: &[super::items::Item], conn| {
            assert!(batch.len() <= 7);
            seen.lock().unwrap().extend(
                batch
                    .iter()
                    .map(|item| item.literal.trim_matches('\'').parse::<i64>().unwrap()),
            );
            mark(batch, conn)
        })
        .unwrap();
    assert_complete(&report, 100);
    assert_eq!(*seen.lock().unwrap(), (-100..0).collect::<Vec<i64>>());
}

#[test]
fn workers_with_different_partitions_and_batches_do_each_row_once() {
    let db = items(Key::Integer, 4_000);
    let shapes = [
        (Cover::Range, 64, 11),
        (Cover::Range, 5, 200),
        (Cover::Modulo, 3, 70),
        (Cover::Modulo, 64, 3),
    ];
    let rows: u64 = std::thread::scope(|scope| {
        let workers: Vec<_> = shapes
            .map(|(cover, partitions, batch)| {
                let db = &db;
                scope.spawn(move || {
                    let partition = partition(Key::Integer)
                        .cover(cover)
                        .partitions(partitions)
                        .batch(batch);
                    let report = partition.run(&db.manager(), mark).unwrap();
                    assert!(report.is_complete(), "{report}");
                    report.rows
                })
            })
            .into_iter()
            .collect();
        workers.into_iter().map(|worker| worker.join().unwrap()).sum()
    });
    assert_eq!(rows, 4_000);
    assert_each_done_once(&db, 4_000);
}

#[test]
fn names_are_quoted_and_a_comment_ends_with_its_line() {
    let db = Db::empty();
    let (open, close) = if db.url().starts_with("mysql") {
        ("`", "`")
    } else {
        ("\"", "\"")
    };
    let quoted = |name: &str| format!("{open}{}{close}", name.replace(open, &open.repeat(2)));
    let (table, key) = ("Or\"d`er", "The Key");
    db.execute(&format!(
        "CREATE TABLE {} ({} BIGINT PRIMARY KEY, done INT)",
        quoted(table),
        quoted(key)
    ));
    db.execute(&format!(
        "INSERT INTO {} VALUES (1, 0), (2, 1), (3, NULL)",
        quoted(table)
    ));
    let seen = Mutex::new(HashSet::new());
    let report = Partition::of(table)
        .key(key, Key::Integer)
        .pending("done = 0 OR done IS NULL -- not yet")
        .columns("'x' AS literal, 'y' AS name")
        .run(
            &db.manager(),
            |batch: &[super::items::Item], conn: &mut super::Conn| {
                use diesel::connection::SimpleConnection;
                seen.lock().unwrap().insert(batch.len());
                Ok(conn.batch_execute(&format!("UPDATE {} SET done = 1", quoted(table)))?)
            },
        )
        .unwrap();
    assert!(report.is_complete(), "{report}");
    assert_eq!(KeyValue::Integer(3).to_string(), "3");
}
