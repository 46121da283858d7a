//! A connection whose machine is gone, and which the server keeps with its locks.

use super::suite::stage::{await_status, find, make_due, start, step, worker};
use super::{Conn, Db};
use diesel::connection::SimpleConnection;
use job_core::{Job, Status, WorkerRow};
use serde_json::json;
use std::time::Duration;

#[test]
fn a_ghosts_lock_on_one_job_keeps_no_other_from_being_rescued_and_promoted() {
    let db = Db::new();
    let conn = &mut db.connect();
    let ids = Job::enqueue_all(conn, ["held", "lost", "lost too"].map(step)).unwrap();
    let dead = WorkerRow::register(conn, &["default".into()], &["step".into()]).unwrap();
    for id in &ids {
        assert_eq!(Job::find_new_job(conn, &dead).unwrap().unwrap().id(), *id);
    }
    // What it was about when it vanished.
    let ghost: &mut Conn = &mut db.connect();
    ghost.batch_execute("BEGIN").unwrap();
    ghost
        .batch_execute(&format!("DELETE FROM jobs_processing WHERE job_id = {}", ids[0]))
        .unwrap();
    WorkerRow::unregister(conn, dead.id).unwrap();
    let started = start(
        worker(&db, |_, _| Ok(json!(null)))
            .heartbeat(Duration::from_millis(50))
            .statement_timeout(Duration::from_secs(1)),
    );
    for id in &ids[1..] {
        await_status(&db, *id, Status::Scheduled);
    }
    let later = step("later")
        .run_in(Duration::from_secs(3600))
        .enqueue(conn)
        .unwrap()
        .id;
    make_due(&db);
    for id in [ids[1], ids[2], later] {
        await_status(&db, id, Status::Completed);
    }
    assert_eq!(find(&db, ids[0]).status(), Status::Processing);
    db.assert_invariants();
    // When the server gives the ghost up, its job is rescued too.
    ghost.batch_execute("ROLLBACK").unwrap();
    await_status(&db, ids[0], Status::Scheduled);
    make_due(&db);
    await_status(&db, ids[0], Status::Completed);
    let report = started.stop();
    assert_eq!((report.completed, report.rescued), (4, 3));
    db.assert_invariants();
}
