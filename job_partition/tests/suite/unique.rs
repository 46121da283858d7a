//! Keys that are not unique, or that nothing shows to be.

use super::Db;
use super::items::{Item, assert_complete, mark, partition, pending};
use job_partition::{Key, PartitionError};

/// A table of 20 rows.
fn table(definition: &str) -> Db {
    let db = Db::empty();
    db.execute(&format!("CREATE TABLE items ({definition})"));
    db.execute("CREATE TABLE audit (item BIGINT NOT NULL, worker VARCHAR(60) NOT NULL)");
    let rows: Vec<String> = (1..=20).map(|id| format!("({id}, 7, 'item', 0)")).collect();
    db.execute(&format!(
        "INSERT INTO items (id, other, name, done) VALUES {}",
        rows.join(", ")
    ));
    db
}

const COLUMNS: &str = "id BIGINT NOT NULL, other BIGINT NOT NULL, name VARCHAR(60), done INT NOT NULL";

#[track_caller]
fn assert_refused(db: &Db) {
    let work =
        |_: &[Item], _: &mut super::Conn| -> anyhow::Result<()> { unreachable!("nothing can be done") };
    let error = partition(Key::Integer).run(&db.manager(), work).unwrap_err();
    assert!(
        matches!(&error, PartitionError::NotUnique { table, key } if table == "items" && key == "id"),
        "{error}"
    );
    assert!(error.to_string().contains("call key_is_unique()"), "{error}");
    assert_eq!(pending(db), 20);
}

#[test]
fn a_key_that_no_index_makes_unique_is_refused() {
    assert_refused(&table(COLUMNS));
    assert_refused(&table(&format!("{COLUMNS}, PRIMARY KEY (id, other)")));
    assert_refused(&table(&format!("{COLUMNS}, PRIMARY KEY (other, id)")));
    assert_refused(&table(&format!("{COLUMNS}, UNIQUE (id, other)")));
    let db = table(COLUMNS);
    db.execute("CREATE INDEX items_id ON items (id); CREATE UNIQUE INDEX items_other ON items (other, id)");
    assert_refused(&db);
}

#[test]
fn a_key_is_unique_by_a_primary_key_or_an_index_of_its_own() {
    for definition in [
        "PRIMARY KEY (id)",
        "UNIQUE (id)",
        "PRIMARY KEY (other, id), UNIQUE (id)",
    ] {
        let db = table(&format!("{COLUMNS}, {definition}"));
        assert_complete(&partition(Key::Integer).run(&db.manager(), mark).unwrap(), 20);
    }
    let db = table(&format!("{COLUMNS}, PRIMARY KEY (other, id)"));
    db.execute("CREATE UNIQUE INDEX items_id ON items (id)");
    assert_complete(&partition(Key::Integer).run(&db.manager(), mark).unwrap(), 20);
}

#[test]
fn a_key_that_is_said_to_be_unique_is_taken_for_it() {
    let db = table(&format!("{COLUMNS}, PRIMARY KEY (other, id)"));
    let partition = partition(Key::Integer)
        .pending("done = 0 AND other = 7")
        .key_is_unique();
    assert_complete(&partition.run(&db.manager(), mark).unwrap(), 20);
}
