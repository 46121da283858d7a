//! What the suite must say in MySQL's own words, and what only MySQL and MariaDB can show.
use super::{Conn, Db};

#[path = "held_rows.rs"]
mod held_rows; // rows that somebody else has locked
#[path = "mysql_lost.rs"]
mod lost; // the server rolls back a whole transaction
#[path = "mysql_sessions.rs"]
mod sessions; // the settings of an app's session

/// Lets a session check foreign keys.
pub(super) const ENFORCE_FOREIGN_KEYS: &str = "SET SESSION foreign_key_checks = ON";
/// Lets a session wait for no lock for long.
const IMPATIENT: &str = "SET SESSION innodb_lock_wait_timeout = 2";
/// A time in the past.
pub(super) const PAST: &str = "'2001-01-01 00:00:00'";
/// Each isolation level as a session's default.
pub(super) const ISOLATION_LEVELS: &[&str] = &[
    "SET SESSION TRANSACTION ISOLATION LEVEL READ UNCOMMITTED",
    "SET SESSION TRANSACTION ISOLATION LEVEL READ COMMITTED",
    "SET SESSION TRANSACTION ISOLATION LEVEL REPEATABLE READ",
    "SET SESSION TRANSACTION ISOLATION LEVEL SERIALIZABLE",
];
/// The levels at which a transaction reads one snapshot.
pub(super) const SNAPSHOT_LEVELS: &[&str] = &["SET SESSION TRANSACTION ISOLATION LEVEL REPEATABLE READ"];
/// Session time zones.
pub(super) const TIME_ZONES: &[&str] = &["SET time_zone = '+05:45'", "SET time_zone = '-11:00'"];
/// Whether a duplicate key that this transaction's snapshot does not show is an error.
pub(super) const SNAPSHOT_HIDES_KEYS: bool = false;

/// Sets the id that the next job gets.
pub(super) fn set_next_id(db: &Db, id: i64) {
    db.execute(&format!("ALTER TABLE jobs AUTO_INCREMENT = {id}"));
}

/// Waits until some session on this database stands at another's unique key. (`innodb_trx` would say it in so many words,
/// but it is refreshed only when nobody has looked for a while.)
pub(super) fn wait_for_a_waiter(db: &Db) {
    let sql = "SELECT count(*) FROM information_schema.processlist
         WHERE db = DATABASE() AND id <> CONNECTION_ID() AND info LIKE 'INSERT INTO unique_keys%'";
    job_test::eventually("a session waits for a lock", || db.count(sql) > 0);
}

/// A table's columns, in order: name, and whether it may be NULL.
pub(super) fn columns(db: &Db, table: &str) -> Vec<(String, bool)> {
    db.texts(&format!(
        "SELECT CONCAT(column_name, ':', is_nullable) FROM information_schema.columns
         WHERE table_schema = DATABASE() AND table_name = '{table}' ORDER BY ordinal_position"
    ))
    .into_iter()
    .map(|text| {
        let text = text.unwrap();
        let (name, nullable) = text.split_once(':').unwrap();
        (name.to_owned(), nullable == "YES")
    })
    .collect()
}
