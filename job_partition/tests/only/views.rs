use super::suite::items::{complete_beside_a_locked_row, items};
use job_partition::{Key, Partition};

#[test]
fn the_rows_of_a_view_are_locked_in_its_table() {
    let db = items(Key::Integer, 100);
    db.execute("CREATE VIEW some_items AS SELECT * FROM items WHERE id < -50");
    let view = Partition::of("some_items")
        .key_is_unique()
        .pending("done = 0")
        .columns("CAST(id AS char(9)) AS literal, name")
        .partitions(3);
    complete_beside_a_locked_row(&db, -70, &view, 49);
}
