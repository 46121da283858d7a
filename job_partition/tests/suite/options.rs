use super::items::{ALL, Item, assert_complete, insert, items, key, mark, partition};
use super::{Conn, Db, PLACEHOLDER, UUID, literal};
use diesel::connection::SimpleConnection;
use diesel::r2d2::ConnectionManager;
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

#[test]
fn placeholders_and_what_is_not_closed_are_refused_and_named() {
    let db = items(Key::Integer, 10);
    for wrong in [
        &format!("done = 0 AND id < {PLACEHOLDER}"),
        "done = 0) OR (done = 1",
        "done = 0 /* not yet",
        "name <> 'item",
    ] {
        for (option, partition) in [
            ("pending", partition(Key::Integer).pending(wrong)),
            ("columns", partition(Key::Integer).columns(wrong)),
        ] {
            let error = refused(&db, partition);
            assert!(
                matches!(&error, PartitionError::InvalidSql { option: named, sql, .. } if *named == option && sql == wrong),
                "{error}"
            );
        }
    }
    let error = refused(
        &db,
        partition(Key::Integer).pending(format!("id < {PLACEHOLDER}")),
    );
    assert!(
        error
            .to_string()
            .contains(&format!("the placeholder {PLACEHOLDER} has no value")),
        "{error}"
    );
}

#[test]
fn what_looks_like_a_placeholder_in_quotes_and_comments_is_none() {
    let db = items(Key::Integer, 70);
    let report = partition(Key::Integer)
        .pending("done = 0 AND name <> 'is it $1, ? or :a?' /* ? $1 */ -- ? $1 (")
        .columns(format!("{} AS literal, name -- ? $1", literal(Key::Integer)))
        .batch(7)
        .run(&db.manager(), mark)
        .unwrap();
    assert_complete(&report, 70);
}

#[test]
fn a_pending_row_without_a_key_is_named() {
    for (cover, kind) in ALL {
        let db = items(kind, 0);
        db.execute("DROP TABLE items");
        let key_type = match kind {
            Key::Integer => "BIGINT",
            Key::Uuid => UUID,
            Key::Text => "VARCHAR(60)",
        };
        db.execute(&format!(
            "CREATE TABLE items (id {key_type} UNIQUE, name VARCHAR(60), done INT NOT NULL DEFAULT 0)"
        ));
        insert(&db, (0..50).map(|number| key(kind, number)));
        insert(&db, ["NULL".to_owned()]);
        let partition = || partition(kind).cover(cover).partitions(3);
        let error = refused(&db, partition());
        assert_eq!(
            error.to_string(),
            "a pending row of table \"items\" has NULL in its key \"id\", so that no worker can take it: give it a key, make \
             the column NOT NULL, or leave such rows out by pending()"
        );
        // One that comes while the run goes on.
        db.execute("DELETE FROM items WHERE id IS NULL");
        let error = partition()
            .run(&db.manager(), |batch: &[Item], conn: &mut Conn| {
                insert_null(conn)?;
                mark(batch, conn)
            })
            .unwrap_err();
        assert!(matches!(error, PartitionError::NullKey { .. }), "{error}");
        // One that is not pending is nobody's business.
        db.execute("UPDATE items SET done = 1 WHERE id IS NULL");
        assert!(partition().run(&db.manager(), mark).unwrap().is_complete());
    }
}

fn insert_null(conn: &mut Conn) -> diesel::QueryResult<()> {
    conn.batch_execute("INSERT INTO items (id, name) VALUES (NULL, 'late')")
}

#[test]
fn no_error_repeats_a_connection_string() {
    for url in [
        "postgres://user:secret@127.0.0.1:no-port/db",
        "postgres//user:secret@127.0.0.1/db",
        "mysql://user:secret@127.0.0.1:no-port/db",
        "nowhere/user:secret@127.0.0.1",
    ] {
        let work = |_: &[Item], _: &mut Conn| -> anyhow::Result<()> { unreachable!("nothing can be done") };
        let error = partition(Key::Integer)
            .run(&ConnectionManager::new(url), work)
            .unwrap_err();
        assert!(matches!(error, PartitionError::Connect(_)), "{error}");
        let shown = format!("{error} {error:?}");
        assert!(!shown.contains("secret"), "{shown}");
    }
}
