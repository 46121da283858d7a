use super::suite::items::{assert_complete, items, mark};
use diesel::connection::SimpleConnection;
use job_partition::{Key, Partition};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::sync_channel;

#[test]
fn the_rows_of_a_view_are_locked_in_its_table() {
    let db = items(Key::Integer, 100);
    db.execute("CREATE VIEW some_items AS SELECT * FROM items WHERE id < -50");
    let other = &mut db.connect();
    other
        .batch_execute("BEGIN; UPDATE items SET name = 'held' WHERE id = -70")
        .unwrap();
    let (rest_is_done, free) = sync_channel(1);
    std::thread::scope(|scope| {
        scope.spawn(move || {
            free.recv().unwrap();
            other.batch_execute("COMMIT").unwrap();
        });
        let sum = AtomicUsize::new(0);
        let report = Partition::of("some_items")
            .key_is_unique()
            .pending("done = 0")
            .columns("CAST(id AS char(9)) AS literal, name")
            .partitions(3)
            .run(&db.manager(), |batch, conn| {
                mark(batch, conn)?;
                if sum.fetch_add(batch.len(), Ordering::SeqCst) + batch.len() == 49 {
                    rest_is_done.send(()).unwrap();
                }
                Ok(())
            })
            .unwrap();
        assert_complete(&report, 50);
    });
}
