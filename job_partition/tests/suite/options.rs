use super::items::{Item, items, partition};
use super::{Conn, Db};
use job_partition::{Failures, Key, Partition, PartitionError};

#[track_caller]
fn refused(db: &Db, partition: Partition) -> PartitionError {
    let work = |_: &[Item], _: &mut Conn| -> anyhow::Result<()> { unreachable!("nothing can be done") };
    partition.run(&db.manager(), work).unwrap_err()
}

#[test]
fn options_that_cannot_be_are_refused_at_once() {
    let db = items(Key::Integer, 10);
    let ok = || partition(Key::Integer);
    let wrong = [
        Partition::of("items"),
        ok().partitions(0),
        ok().threads(0),
        ok().batch(0),
        ok().batch(30_001),
        ok().batch_bounds(0..=8),
        ok().max_failures(Failures::Share(1.5)),
        Partition::of("a.b.c").pending("done = 0"),
        Partition::of("").pending("done = 0"),
    ];
    for partition in wrong {
        let error = refused(&db, partition);
        assert!(matches!(error, PartitionError::Invalid(_)), "{error}");
    }
}

#[test]
fn a_table_and_a_key_that_do_not_exist_are_named() {
    let db = items(Key::Integer, 10);
    let error = refused(&db, Partition::of("nothing").pending("done = 0"));
    assert!(
        matches!(&error, PartitionError::UnknownTable(table) if table == "nothing"),
        "{error}"
    );
    let error = refused(&db, partition(Key::Integer).key("number", Key::Integer));
    assert_eq!(
        error.to_string(),
        "table \"items\" has no column \"number\" to be its key"
    );
}

#[test]
fn a_key_of_another_kind_is_named() {
    let db = items(Key::Text, 10);
    let error = refused(&db, partition(Key::Text).key("id", Key::Integer));
    assert!(
        matches!(
            error,
            PartitionError::WrongKey {
                expected: Key::Integer,
                ..
            }
        ),
        "{error}"
    );
}

#[test]
fn a_condition_that_the_database_does_not_understand_is_its_error() {
    let db = items(Key::Integer, 10);
    let error = refused(&db, partition(Key::Integer).pending("finished = 0"));
    assert!(matches!(error, PartitionError::Database(_)), "{error}");
    assert!(error.to_string().contains("finished"), "{error}");
}
