//! Rows that somebody else has locked and does not let go: a forgotten psql, or the connection of a machine that is gone.

use super::super::suite::support::{any, claimed, register, status};
use super::{Conn, Db, IMPATIENT, PAST};
use diesel::Connection;
use diesel::connection::SimpleConnection;
use job_core::housekeeping::{promote, prune, rescue};
use job_core::{Job, Status, WorkerRow};
use job_db::Database;
use std::time::Duration;

const HOUR: Duration = Duration::from_secs(3_600);

/// A session that has done something in a transaction, and stays in it.
fn holder(db: &Db, sql: &str) -> Conn {
    let mut conn = db.connect();
    conn.batch_execute("BEGIN").unwrap();
    conn.batch_execute(sql).unwrap();
    conn
}

/// A session that would rather fail than hang.
fn impatient(db: &Db) -> Conn {
    let mut conn = db.connect();
    conn.batch_execute(IMPATIENT).unwrap();
    conn
}

#[test]
fn a_locked_row_of_an_old_job_keeps_no_other_from_being_pruned_or_promoted() {
    for (table, key) in [("jobs_finished", "job_id"), ("jobs", "id")] {
        let db = Db::new();
        let conn = &mut impatient(&db);
        let worker = register(conn);
        let ids: Vec<i64> = (0..5)
            .map(|_| {
                let job = claimed(conn, &worker, any());
                job.complete(conn, &"done").unwrap();
                job.id()
            })
            .collect();
        db.execute(&format!("UPDATE jobs_finished SET finished_at = {PAST}"));
        let later = any().run_in(HOUR).enqueue(conn).unwrap().id;
        db.execute(&format!("UPDATE jobs_scheduled SET run_at = {PAST}"));
        let sql = format!("UPDATE {table} SET {key} = {key} WHERE {key} = {}", ids[1]);
        let mut holder = holder(&db, &sql);
        let pruned = prune(conn, Status::Completed, HOUR, 0, 100).unwrap();
        assert_eq!((pruned.removed, pruned.next), (4, None), "{table}");
        assert_eq!(promote(conn, 100).unwrap(), 1);
        assert_eq!(db.bigints("SELECT id FROM jobs ORDER BY id"), [ids[1], later]);
        db.assert_invariants();
        holder.batch_execute("ROLLBACK").unwrap();
        let pruned = prune(conn, Status::Completed, HOUR, 0, 100).unwrap();
        assert_eq!(pruned.removed, 1, "{table}");
        db.assert_invariants();
    }
}

#[test]
fn a_job_that_a_ghost_has_locked_keeps_no_other_from_being_rescued() {
    let db = Db::new();
    let conn = &mut impatient(&db);
    let dead = register(conn);
    let ids: Vec<i64> = (0..5).map(|_| claimed(conn, &dead, any()).id()).collect();
    WorkerRow::unregister(conn, dead.id).unwrap();
    // What the dead worker was about when its machine was cut off.
    let sql = format!("DELETE FROM jobs_processing WHERE job_id = {}", ids[1]);
    let mut ghost = holder(&db, &sql);
    let mut rescued = rescue(conn, 100).unwrap();
    rescued.sort_unstable();
    assert_eq!(rescued, [ids[0], ids[2], ids[3], ids[4]]);
    assert_eq!(status(conn, ids[1]), Status::Processing);
    db.assert_invariants();
    ghost.batch_execute("ROLLBACK").unwrap();
    assert_eq!(rescue(conn, 100).unwrap(), [ids[1]]);
    assert_eq!(Job::counts(conn).unwrap().of(Status::Scheduled), 5);
    db.assert_invariants();
}

/// A claim that is open locks what it takes, and not the lane.
#[test]
fn a_claim_that_is_not_committed_leaves_the_rest_to_others() {
    let db = Db::new();
    let conn = &mut db.connect();
    let worker = register(conn);
    Job::enqueue_all(conn, (0..200).map(|_| any())).unwrap();
    let request = |limit| job_core::ClaimRequest {
        worker: worker.id,
        queue: "default",
        priority: 0,
        after: 0,
        kinds: &worker.kinds,
        limit,
    };
    let other = &mut db.connect();
    for conn in [&mut *conn, &mut *other] {
        <Conn as job_db::DbConnection>::Db::prepare_session(conn, HOUR).unwrap();
    }
    conn.transaction(|conn| {
        assert_eq!(job_core::claim_inside(conn, &request(10)).unwrap().len(), 10);
        assert_eq!(job_core::claim(other, &request(190)).unwrap().len(), 190);
        diesel::QueryResult::Ok(())
    })
    .unwrap();
    db.assert_invariants();
}
