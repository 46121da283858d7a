use super::Db;
use std::panic::{AssertUnwindSafe, catch_unwind};

/// A time in the words of every database: SQLite stores the text, which is nothing to these tests.
const TIME: &str = "'2026-01-01 00:00:00'";

fn add_job(db: &Db, id: i64, unique_key: &str) {
    db.execute(&format!(
        "INSERT INTO jobs (id, kind, queue, priority, max_attempts, args, unique_key, created_at)
         VALUES ({id}, 'kind', 'default', 0, 5, '{{}}', {unique_key}, {TIME})"
    ));
}

fn put_in_new(db: &Db, id: i64, kind: &str) {
    db.execute(&format!(
        "INSERT INTO jobs_new (queue, priority, job_id, kind, attempts, uncharged)
         VALUES ('default', 0, {id}, '{kind}', 0, 0)"
    ));
}

fn put_in_finished(db: &Db, id: i64) {
    db.execute(&format!(
        "INSERT INTO jobs_finished (job_id, status, attempts, uncharged, finished_at) VALUES ({id}, 3, 1, 0, {TIME})"
    ));
}

fn hold_key(db: &Db, key: &str, id: i64) {
    db.execute(&format!("INSERT INTO unique_keys VALUES ('{key}', {id})"));
}

/// What the check says of a database in which something is broken.
fn complaint(db: &Db) -> String {
    let result = catch_unwind(AssertUnwindSafe(|| db.assert_invariants()));
    let panic = result.expect_err("a broken invariant");
    panic.downcast_ref::<String>().expect("a message").clone()
}

#[track_caller]
fn assert_found(db: &Db, rule: &str, id: i64) {
    let found = complaint(db);
    assert!(
        found.contains(&format!("{rule}: 1 jobs, such as {id}")),
        "{found}"
    );
}

#[test]
fn all_is_well() {
    let db = Db::new();
    add_job(&db, 1, "NULL");
    put_in_new(&db, 1, "kind");
    add_job(&db, 2, "'key'");
    put_in_finished(&db, 2);
    add_job(&db, 3, "'key'");
    put_in_new(&db, 3, "kind");
    hold_key(&db, "key", 3);
    db.assert_invariants();
}

#[test]
fn a_job_in_no_table() {
    let db = Db::new();
    add_job(&db, 7, "NULL");
    assert_found(&db, "a job is in no status table", 7);
}

#[test]
fn a_job_in_two_tables() {
    let db = Db::new();
    add_job(&db, 7, "NULL");
    put_in_new(&db, 7, "kind");
    put_in_finished(&db, 7);
    assert_found(&db, "a job is in more than one status table, or twice in one", 7);
}

#[test]
fn a_row_without_its_job() {
    let db = Db::new();
    put_in_finished(&db, 7);
    assert_found(&db, "a status table has a row without its job", 7);
}

#[test]
fn a_copy_that_differs() {
    let db = Db::new();
    add_job(&db, 7, "NULL");
    put_in_new(&db, 7, "another");
    assert_found(&db, "queue, priority or kind in jobs_new are not the job's", 7);
}

#[test]
fn a_key_that_is_held_wrongly() {
    let rule = "a unique key is held for a job that is gone, has ended, or has another key";
    let db = Db::new();
    hold_key(&db, "key", 6);
    assert_found(&db, rule, 6);

    let db = Db::new();
    add_job(&db, 7, "'key'");
    put_in_finished(&db, 7);
    hold_key(&db, "key", 7);
    assert_found(&db, rule, 7);

    let db = Db::new();
    add_job(&db, 8, "'key'");
    put_in_new(&db, 8, "kind");
    hold_key(&db, "another", 8);
    assert_found(&db, rule, 8);
}

#[test]
fn a_key_that_is_not_held() {
    let db = Db::new();
    add_job(&db, 7, "'key'");
    put_in_new(&db, 7, "kind");
    assert_found(&db, "a job that has not ended does not hold its unique key", 7);
}
