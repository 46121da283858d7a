//! What to do about an error of the database that users meet at the beginning.

use diesel::result::Error;

const NO_TABLES: &str = " (the database has none of Gatun's tables: is this the right database, and was \
                         job_core::migrate(conn) called?)";

const LOCKED: &str = " (another connection is writing: call job_core::prepare_connection(conn) on each of your connections, \
                      which then wait for it)";

/// Our tables and views, without those whose names begin like another one's.
const TABLES: [&str; 5] = [
    "job_schema_versions",
    "jobs",
    "job_failures",
    "unique_keys",
    "workers",
];

/// How the databases say that a table is not there.
const MISSING: [&str; 3] = ["no such table", "does not exist", "doesn't exist"];

/// What to add to the error's text; empty where there is nothing to say.
pub(super) fn of(error: &Error) -> &'static str {
    let Error::DatabaseError(_, info) = error else {
        return "";
    };
    let message = info.message();
    let has = |texts: &[&str]| texts.iter().any(|text| message.contains(text));
    if has(&MISSING) && has(&TABLES) {
        NO_TABLES
    } else if message.contains("database is locked") {
        LOCKED
    } else {
        ""
    }
}
