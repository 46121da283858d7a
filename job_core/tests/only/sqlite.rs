//! What the suite must say in SQLite's own words.
use super::Db;
use diesel::connection::SimpleConnection;

/// Lets a session check foreign keys.
pub(super) const ENFORCE_FOREIGN_KEYS: &str = "PRAGMA foreign_keys = ON";
/// A time in the past.
pub(super) const PAST: &str = "978307200000000";
/// SQLite has one level: serializable.
pub(super) const ISOLATION_LEVELS: &[&str] = &["PRAGMA read_uncommitted = 0"];
/// The levels at which a transaction reads one snapshot; but here nobody writes while another's transaction does.
pub(super) const SNAPSHOT_LEVELS: &[&str] = &[];
/// Sessions have no time zone.
pub(super) const TIME_ZONES: &[&str] = &["SELECT 1"];
/// Whether a duplicate key that this transaction's snapshot does not show is an error.
pub(super) const SNAPSHOT_HIDES_KEYS: bool = false;

/// Sets the id that the next job gets.
pub(super) fn set_next_id(db: &Db, id: i64) {
    db.execute(&format!(
        "DELETE FROM sqlite_sequence WHERE name = 'jobs'; INSERT INTO sqlite_sequence VALUES ('jobs', {})",
        id - 1
    ));
}

/// Who waits for the write lock of a file cannot be seen; but while it is held, nobody else can have written.
pub(super) fn wait_for_a_waiter(_: &Db) {}

/// A table's columns, in order: name, and whether it may be NULL.
pub(super) fn columns(db: &Db, table: &str) -> Vec<(String, bool)> {
    db.texts(&format!(
        "SELECT name || ':' || \"notnull\" FROM pragma_table_info('{table}') ORDER BY cid"
    ))
    .into_iter()
    .map(|text| {
        let text = text.unwrap();
        let (name, not_null) = text.split_once(':').unwrap();
        (name.to_owned(), not_null == "0")
    })
    .collect()
}

/// A connection without `prepare_connection` does not wait, and is told so.
#[test]
fn a_connection_that_does_not_wait_is_told_how_to() {
    let db = Db::new();
    let (writer, conn) = (&mut db.connect(), &mut db.connect());
    conn.batch_execute("PRAGMA busy_timeout = 0").unwrap();
    writer.batch_execute("BEGIN IMMEDIATE").unwrap();
    let error = super::suite::support::any().enqueue(conn).unwrap_err();
    assert!(error.to_string().contains("prepare_connection"), "{error}");
    writer.batch_execute("ROLLBACK").unwrap();
}
