use super::items::{assert_complete, assert_each_done_once, has, items, mark, partition};
use diesel::connection::SimpleConnection;
use job_partition::{Cover, Key, Outcome};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// Flaw 4 of "a worker is a number": nothing said when the whole table was done.
#[test]
fn flaw_nothing_is_called_complete_while_a_row_is_pending() {
    for cover in [Cover::Range, Cover::Modulo] {
        let db = items(Key::Integer, 100);
        // Somebody holds a row (on SQLite: the file).
        let other = &mut db.connect();
        other
            .batch_execute("BEGIN; UPDATE items SET name = 'held' WHERE id = -50")
            .unwrap();
        let partition = partition(Key::Integer)
            .cover(cover)
            .patience(Duration::ZERO)
            .batch(10);
        let report = partition.run(&db.manager(), mark).unwrap();
        let Outcome::Incomplete { busy, failed: 0 } = report.outcome else {
            panic!("{report}")
        };
        assert!(busy > 0, "{report}");
        assert!(report.rows < 100, "{report}");

        other.batch_execute("COMMIT").unwrap();
        let rest = partition.run(&db.manager(), mark).unwrap();
        assert!(rest.is_complete(), "{rest}");
        assert_eq!(report.rows + rest.rows, 100);
        assert_each_done_once(&db, 100);
    }
}

#[test]
fn the_last_look_finds_low_ids_that_were_committed_late() {
    for cover in [Cover::Range, Cover::Modulo] {
        let db = items(Key::Integer, 100);
        let inserted = AtomicBool::new(false);
        let report = partition(Key::Integer)
            .cover(cover)
            .partitions(1)
            .batch(30)
            .run(&db.manager(), |batch, conn| {
                // The last row of the only partition: what lies before it was passed long ago.
                if has(batch, -1) && !inserted.swap(true, Ordering::Relaxed) {
                    conn.batch_execute(
                        "INSERT INTO items (id, name) VALUES (-1000, 'late'), (-1001, 'late')",
                    )?;
                }
                mark(batch, conn)
            })
            .unwrap();
        assert!(inserted.load(Ordering::Relaxed));
        assert_complete(&report, 102);
        assert_each_done_once(&db, 102);
    }
}

#[test]
fn what_is_done_already_is_not_done_again() {
    let db = items(Key::Integer, 100);
    assert_complete(&partition(Key::Integer).run(&db.manager(), mark).unwrap(), 100);
    assert_complete(
        &partition(Key::Integer)
            .threads(3)
            .run(&db.manager(), mark)
            .unwrap(),
        0,
    );
    db.execute("UPDATE items SET done = 0 WHERE id >= -10; DELETE FROM audit WHERE item >= -10");
    assert_complete(&partition(Key::Integer).run(&db.manager(), mark).unwrap(), 10);
    assert_each_done_once(&db, 100);
}

#[test]
fn a_closure_may_delete_its_rows() {
    use super::items::Item;
    use super::{Conn, literal};
    for kind in [Key::Integer, Key::Uuid, Key::Text] {
        let db = items(kind, 300);
        let report = job_partition::Partition::of("items")
            .key("id", kind)
            .pending("1 = 1")
            .columns(format!("{} AS literal, name", literal(kind)))
            .batch(20)
            .run(&db.manager(), |batch: &[Item], conn: &mut Conn| {
                let keys: Vec<&str> = batch.iter().map(|item| item.literal.as_str()).collect();
                Ok(conn.batch_execute(&format!("DELETE FROM items WHERE id IN ({})", keys.join(", ")))?)
            })
            .unwrap();
        assert_complete(&report, 300);
        assert_eq!(db.count("SELECT count(*) FROM items"), 0);
    }
}
