use super::items::{
    assert_complete, assert_done_at_most_once, assert_each_done_once, has, items, key, mark, partition,
    pending,
};
use diesel::connection::SimpleConnection;
use job_partition::{Cover, Failures, Key, KeyValue, Outcome, PartitionError, Report};
use std::sync::atomic::{AtomicUsize, Ordering};

fn failed(report: &Report) -> Vec<i64> {
    let keys = report.failures.iter().map(|row| match row.key {
        KeyValue::Integer(id) => id,
        _ => panic!("{report}"),
    });
    keys.collect()
}

#[test]
fn poison_rows_are_found_and_reported_and_the_rest_completes() {
    for cover in [Cover::Range, Cover::Modulo] {
        let db = items(Key::Integer, 1_000);
        let poison = [-100, -99, 300, 899];
        let alone = AtomicUsize::new(0);
        let report = partition(Key::Integer)
            .cover(cover)
            .partitions(4)
            .batch(200)
            .threads(2)
            .run(&db.manager(), |batch, conn| {
                // What was done before the error is rolled back.
                mark(batch, conn)?;
                if let Some(id) = poison.into_iter().find(|id| has(batch, *id)) {
                    alone.fetch_add(usize::from(batch.len() == 1), Ordering::Relaxed);
                    anyhow::bail!("item {id} is poison");
                }
                Ok(())
            })
            .unwrap();
        assert_eq!(
            report.outcome,
            Outcome::Incomplete { busy: 0, failed: 4 },
            "{report}"
        );
        assert_eq!(failed(&report), poison);
        assert_eq!(report.failures[2].error, "item 300 is poison");
        assert_eq!(
            alone.load(Ordering::Relaxed),
            4,
            "a row that is known to fail is not tried again"
        );
        assert_eq!(report.rows, 996);
        assert_eq!(pending(&db), 4);
        assert_done_at_most_once(&db);
    }
}

#[test]
fn poison_is_found_by_every_kind_of_key() {
    for kind in [Key::Uuid, Key::Text] {
        let db = items(kind, 300);
        let poison = key(kind, 17).to_lowercase();
        let digits = |text: &str| text.to_lowercase().replace(['-', 'x', '\''], "");
        let report = partition(kind)
            .partitions(2)
            .run(&db.manager(), |batch: &[super::items::Item], conn| {
                mark(batch, conn)?;
                anyhow::ensure!(
                    batch.iter().all(|item| digits(&item.literal) != digits(&poison)),
                    "poison"
                );
                Ok(())
            })
            .unwrap();
        assert_eq!(
            report.outcome,
            Outcome::Incomplete { busy: 0, failed: 1 },
            "{report}"
        );
        assert_eq!(report.rows, 299);
        assert_done_at_most_once(&db);
    }
}

#[test]
fn an_error_of_the_database_is_a_failure_of_its_row() {
    let db = items(Key::Integer, 100);
    db.execute("CREATE TABLE taken (id BIGINT PRIMARY KEY); INSERT INTO taken VALUES (-42)");
    let report = partition(Key::Integer)
        .partitions(2)
        .run(&db.manager(), |batch: &[super::items::Item], conn| {
            for item in batch {
                conn.batch_execute(&format!(
                    "INSERT INTO taken VALUES ({})",
                    item.literal.trim_matches('\'')
                ))?;
            }
            mark(batch, conn)
        })
        .unwrap();
    assert_eq!(failed(&report), [-42]);
    assert_eq!(db.count("SELECT count(*) FROM taken"), 100);
    assert_done_at_most_once(&db);
}

#[test]
fn a_row_that_cannot_be_read_fails_alone() {
    let db = items(Key::Integer, 100);
    db.execute("UPDATE items SET name = NULL WHERE id IN (-7, -70)");
    let report = partition(Key::Integer)
        .partitions(2)
        .run(&db.manager(), mark)
        .unwrap();
    assert_eq!(failed(&report), [-70, -7]);
    assert_eq!(report.rows, 98);
    assert!(report.failures[0].error.contains("cannot be read"), "{report}");
}

/// A type of the caller's that panics on what it reads.
struct Picky;

impl From<String> for Picky {
    fn from(text: String) -> Self {
        assert!(text != "odd", "an odd name");
        Picky
    }
}

#[derive(diesel::QueryableByName)]
struct PickyItem {
    #[diesel(sql_type = diesel::sql_types::Text)]
    literal: String,
    #[diesel(sql_type = diesel::sql_types::Text, deserialize_as = String)]
    #[allow(dead_code)] // It is read, and that is all.
    name: Picky,
}

#[test]
fn a_panic_while_a_row_is_read_is_a_failure_of_that_row() {
    let db = items(Key::Integer, 100);
    db.execute("UPDATE items SET name = 'odd' WHERE id = -7");
    let report = partition(Key::Integer)
        .partitions(2)
        .run(&db.manager(), |batch: &[PickyItem], conn: &mut super::Conn| {
            let keys: Vec<&str> = batch.iter().map(|item| item.literal.trim_matches('\'')).collect();
            Ok(conn.batch_execute(&format!(
                "UPDATE items SET done = 1 WHERE id IN ({})",
                keys.join(", ")
            ))?)
        })
        .unwrap();
    assert_eq!(failed(&report), [-7]);
    assert_eq!(report.failures[0].error, "the row cannot be read: an odd name");
    assert_eq!(report.rows, 99);
}

#[test]
fn a_panic_is_a_failure_of_its_row() {
    let db = items(Key::Integer, 200);
    let report = partition(Key::Integer)
        .partitions(2)
        .threads(2)
        .run(&db.manager(), |batch, conn| {
            mark(batch, conn)?;
            assert!(!has(batch, 13), "thirteen");
            Ok(())
        })
        .unwrap();
    assert_eq!(failed(&report), [13]);
    assert_eq!(report.failures[0].error, "the closure panicked: thirteen");
    assert_eq!(report.rows, 199);
    assert_done_at_most_once(&db);
}

#[test]
fn a_row_that_the_closure_leaves_pending_is_a_failure_of_that_row() {
    for cover in [Cover::Range, Cover::Modulo] {
        let db = items(Key::Integer, 100);
        let report = partition(Key::Integer)
            .cover(cover)
            .partitions(3)
            .run(&db.manager(), |batch, conn| {
                mark(batch, conn)?;
                Ok(conn.batch_execute("UPDATE items SET done = 0 WHERE id = -50")?)
            })
            .unwrap();
        assert_eq!(failed(&report), [-50]);
        assert!(report.failures[0].error.contains("still pending"), "{report}");
        assert_eq!(report.rows, 99);
        assert_done_at_most_once(&db);
    }
}

#[test]
fn too_many_failures_end_the_run() {
    for limit in [Failures::Count(2), Failures::Share(0.002)] {
        let db = items(Key::Integer, 500);
        let error = partition(Key::Integer)
            .batch(10)
            .max_failures(limit)
            .run(&db.manager(), |_: &[super::items::Item], _| anyhow::bail!("down"))
            .unwrap_err();
        let PartitionError::TooManyFailures(report) = error else {
            panic!("{error}")
        };
        assert_eq!(report.failures.len(), 3, "{report}");
        assert_eq!(report.outcome, Outcome::Stopped);
        assert_eq!(pending(&db), 500);
    }
}

#[test]
fn after_the_poison_is_removed_a_later_run_does_the_row() {
    let db = items(Key::Integer, 50);
    let partition = partition(Key::Integer);
    let run = |is_cured: bool| {
        partition
            .run(&db.manager(), |batch, conn| {
                anyhow::ensure!(is_cured || !has(batch, -60), "poison");
                mark(batch, conn)
            })
            .unwrap()
    };
    assert_eq!(failed(&run(false)), [-60]);
    assert_complete(&run(true), 1);
    assert_each_done_once(&db, 50);
}
