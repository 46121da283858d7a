use super::suite::items::{assert_complete, assert_each_done_once, items, mark, partition};
use diesel::connection::SimpleConnection;
use job_partition::Key;

/// Flaw 2 of "a worker is a number", to the letter: its names were the numbers from 0, of the whole server.
#[test]
fn flaw_locks_of_others_named_by_numbers_are_in_nobodys_way() {
    let db = items(Key::Integer, 300);
    let other = &mut db.connect();
    for number in 0..65 {
        other
            .batch_execute(&format!("DO GET_LOCK('{number}', 0)"))
            .unwrap();
    }
    assert_complete(&partition(Key::Integer).run(&db.manager(), mark).unwrap(), 300);
    assert_each_done_once(&db, 300);
}

#[test]
fn the_lock_is_freed_after_each_batch() {
    let db = items(Key::Integer, 100);
    let manager = db.manager();
    assert_complete(
        &partition(Key::Integer).batch(10).run(&manager, mark).unwrap(),
        100,
    );
    // A second run on new sessions has all partitions at once.
    db.execute("UPDATE items SET done = 0; DELETE FROM audit");
    assert_complete(
        &partition(Key::Integer).batch(10).run(&manager, mark).unwrap(),
        100,
    );
}
