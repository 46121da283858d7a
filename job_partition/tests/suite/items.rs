//! A table of items to be done, with an audit of each time that one was done.
#![allow(dead_code)] // Which helpers are used depends on the database.

use super::{Conn, Db, KILL, SESSION, UUID, literal, uuid};
use diesel::connection::SimpleConnection;
use diesel::r2d2::{ConnectionManager, Error, ManageConnection};
use diesel::sql_types::{BigInt, Text};
use diesel::{QueryResult, QueryableByName, RunQueryDsl};
use job_partition::{Cover, Key, Outcome, Partition, PartitionError, Report};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::sync_channel;

pub(crate) const ALL: [(Cover, Key); 6] = [
    (Cover::Range, Key::Integer),
    (Cover::Range, Key::Uuid),
    (Cover::Range, Key::Text),
    (Cover::Modulo, Key::Integer),
    (Cover::Modulo, Key::Uuid),
    (Cover::Modulo, Key::Text),
];

/// An item, by its key as an SQL literal.
#[derive(Debug, QueryableByName)]
pub(crate) struct Item {
    #[diesel(sql_type = Text)]
    pub(crate) literal: String,
    #[diesel(sql_type = Text)]
    pub(crate) name: String,
}

#[derive(QueryableByName)]
struct Session {
    #[diesel(sql_type = BigInt)]
    number: i64,
}

/// The connection's number on the server.
pub(crate) fn session(conn: &mut Conn) -> QueryResult<i64> {
    let session: Session = diesel::sql_query(SESSION).get_result(conn)?;
    Ok(session.number)
}

/// Has the server end a session.
#[track_caller]
pub(crate) fn cut(db: &Db, session: i64) {
    db.execute(&KILL.expect("a server").replace("ID", &session.to_string()));
}

pub(crate) fn make_tables(db: &Db, kind: Key) {
    let key = match kind {
        Key::Integer => "BIGINT",
        Key::Uuid => UUID,
        Key::Text => "VARCHAR(60)",
    };
    db.execute(&format!(
        "CREATE TABLE items (id {key} NOT NULL PRIMARY KEY, name VARCHAR(60), done INT NOT NULL DEFAULT 0)"
    ));
    db.execute(&format!(
        "CREATE TABLE audit (item {key} NOT NULL, worker VARCHAR(60) NOT NULL)"
    ));
}

pub(crate) fn insert(db: &Db, keys: impl IntoIterator<Item = String>) {
    let keys: Vec<String> = keys.into_iter().map(|key| format!("({key}, 'item')")).collect();
    for keys in keys.chunks(1000) {
        db.execute(&format!(
            "INSERT INTO items (id, name) VALUES {}",
            keys.join(", ")
        ));
    }
}

/// Keys that are spread over all that the kind has: an odd multiplier visits every number once.
pub(crate) fn key(kind: Key, number: u64) -> String {
    let spread = number.wrapping_mul(0x9e37_79b9_7f4a_7c15);
    match kind {
        Key::Integer => (number as i64 - 100).to_string(),
        Key::Uuid => uuid(u128::from(spread) << 64 | u128::from(number)),
        Key::Text => format!(
            "'{}{spread:x}é'",
            if number.is_multiple_of(3) { "K" } else { "k" }
        ),
    }
}

/// A table of so many items.
pub(crate) fn items(kind: Key, count: u64) -> Db {
    let db = Db::empty();
    make_tables(&db, kind);
    insert(&db, (0..count).map(|number| key(kind, number)));
    db
}

pub(crate) fn partition(kind: Key) -> Partition {
    Partition::of("items")
        .key("id", kind)
        .pending("done = 0")
        .columns(format!("{} AS literal, name", literal(kind)))
}

/// Does the items, and writes each into the audit.
pub(crate) fn mark(batch: &[Item], conn: &mut Conn) -> anyhow::Result<()> {
    mark_as("a worker", batch, conn)
}

pub(crate) fn mark_as(worker: &str, batch: &[Item], conn: &mut Conn) -> anyhow::Result<()> {
    let keys: Vec<&str> = batch.iter().map(|item| item.literal.as_str()).collect();
    let keys = keys.join(", ");
    conn.batch_execute(&format!(
        "INSERT INTO audit (item, worker) SELECT id, '{worker}' FROM items WHERE id IN ({keys})"
    ))?;
    conn.batch_execute(&format!("UPDATE items SET done = 1 WHERE id IN ({keys})"))?;
    Ok(())
}

pub(crate) fn has(batch: &[Item], key: i64) -> bool {
    let key = key.to_string();
    batch.iter().any(|item| item.literal.trim_matches('\'') == key)
}

pub(crate) fn pending(db: &Db) -> i64 {
    db.count("SELECT count(*) FROM items WHERE done = 0")
}

#[track_caller]
pub(crate) fn assert_each_done_once(db: &Db, count: u64) {
    assert_eq!(pending(db), 0, "nothing is pending");
    assert_done_at_most_once(db);
    assert_eq!(
        db.count("SELECT count(*) FROM audit"),
        count as i64,
        "each was done"
    );
}

#[track_caller]
pub(crate) fn assert_done_at_most_once(db: &Db) {
    let twice = db.count("SELECT count(*) FROM (SELECT item FROM audit GROUP BY item HAVING count(*) > 1) t");
    assert_eq!(twice, 0, "items that were done twice");
    let audited = db.count("SELECT count(*) FROM audit");
    assert_eq!(
        audited,
        db.count("SELECT count(*) FROM items WHERE done = 1"),
        "the audit is of what is done"
    );
}

#[track_caller]
pub(crate) fn assert_complete(report: &Report, count: u64) {
    assert_eq!(report.outcome, Outcome::Complete { rows: count }, "{report}");
    assert_eq!(report.rows, count);
}

/// Connections that something is done with before they are used, such as a setting made.
pub(crate) struct Prepared<F>(pub(crate) ConnectionManager<Conn>, pub(crate) F);

impl<F> ManageConnection for Prepared<F>
where
    F: Fn(&mut Conn) -> QueryResult<()> + Send + Sync + 'static,
{
    type Connection = Conn;
    type Error = Error;

    fn connect(&self) -> Result<Conn, Error> {
        let mut conn = self.0.connect()?;
        (self.1)(&mut conn).map_err(Error::QueryError)?;
        Ok(conn)
    }

    fn is_valid(&self, conn: &mut Conn) -> Result<(), Error> {
        self.0.is_valid(conn)
    }

    fn has_broken(&self, conn: &mut Conn) -> bool {
        self.0.has_broken(conn)
    }
}

/// Of a table whose connections lose what tells its keys apart.
#[track_caller]
pub(crate) fn assert_circle<F>(db: &Db, prepare: F)
where
    F: Fn(&mut Conn) -> QueryResult<()> + Clone + Send + Sync + 'static,
{
    for cover in [Cover::Range, Cover::Modulo] {
        // All rows fail, so that they are met again.
        let error = partition(Key::Text)
            .cover(cover)
            .key_is_unique()
            .partitions(1)
            .batch(2)
            .run(&Prepared(db.manager(), prepare.clone()), |_: &[Item], _| {
                anyhow::bail!("poison")
            })
            .unwrap_err();
        assert!(
            matches!(&error, PartitionError::Circle { key, .. } if key == "id"),
            "{error}"
        );
        assert!(
            error.to_string().contains("the key \"id\" of table \"items\""),
            "{error}"
        );
    }
}

/// Completes a run while somebody has one row locked, who lets it go when the `rest` of them is done.
#[track_caller]
pub(crate) fn complete_beside_a_locked_row(db: &Db, id: i64, partition: &Partition, rest: usize) {
    let other = &mut db.connect();
    other
        .batch_execute(&format!("BEGIN; UPDATE items SET name = 'held' WHERE id = {id}"))
        .unwrap();
    let (rest_is_done, free) = sync_channel(1);
    std::thread::scope(|scope| {
        scope.spawn(move || {
            free.recv().unwrap();
            other.batch_execute("COMMIT").unwrap();
        });
        let sum = AtomicUsize::new(0);
        let report = partition
            .run(&db.manager(), |batch, conn| {
                mark(batch, conn)?;
                if sum.fetch_add(batch.len(), Ordering::SeqCst) + batch.len() == rest {
                    rest_is_done.send(()).unwrap();
                }
                Ok(())
            })
            .unwrap();
        assert_complete(&report, rest as u64 + 1);
    });
}
