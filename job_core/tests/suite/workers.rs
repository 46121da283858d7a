use super::support::{any, register, strings};
use super::{Db, only};
use chrono::TimeDelta;
use job_core::{Job, WorkerRow, now};

#[test]
fn a_worker_has_a_row_from_register_to_unregister() {
    let db = Db::new();
    let conn = &mut db.connect();
    assert_eq!(WorkerRow::list(conn).unwrap(), []);
    let before = now(conn).unwrap();
    let queues = strings(&["z 🦀", "a", "\"quoted\""]);
    let worker = WorkerRow::register(conn, &queues, &strings(&["echo"])).unwrap();
    let after = now(conn).unwrap();
    let listed = WorkerRow::list(conn).unwrap().remove(0);
    assert_eq!(
        (listed.id, &listed.host, listed.pid),
        (worker.id, &worker.host, worker.pid)
    );
    assert_eq!((&listed.queues, &listed.kinds), (&queues, &strings(&["echo"])));
    assert!(!listed.host.is_empty() && listed.pid == i64::from(std::process::id()));
    let rounding = TimeDelta::milliseconds(1);
    for time in [listed.started_at, listed.beat_at, worker.started_at] {
        assert!(before - rounding <= time && time <= after + rounding);
    }
    WorkerRow::unregister(conn, worker.id).unwrap();
    WorkerRow::unregister(conn, worker.id).unwrap();
    assert_eq!(WorkerRow::list(conn).unwrap(), []);
    db.assert_invariants();
}

#[test]
fn workers_are_listed_the_oldest_first() {
    let db = Db::new();
    let conn = &mut db.connect();
    let (first, second) = (register(conn), register(conn));
    db.execute(&format!(
        "UPDATE workers SET started_at = {} WHERE id = {}",
        only::PAST,
        second.id
    ));
    let ids: Vec<i64> = WorkerRow::list(conn)
        .unwrap()
        .iter()
        .map(|worker| worker.id)
        .collect();
    assert_eq!(ids, [second.id, first.id]);
    db.assert_invariants();
}

#[test]
fn a_beat_is_the_databases_time() {
    let db = Db::new();
    let conn = &mut db.connect();
    let worker = register(conn);
    db.execute(&format!("UPDATE workers SET beat_at = {}", only::PAST));
    let before = now(conn).unwrap() - TimeDelta::milliseconds(1);
    assert!(WorkerRow::beat(conn, worker.id).unwrap());
    let beat = WorkerRow::list(conn).unwrap()[0].beat_at;
    assert!(before <= beat && beat <= now(conn).unwrap() + TimeDelta::milliseconds(1));
    assert!(!WorkerRow::beat(conn, worker.id ^ 1).unwrap());
    db.assert_invariants();
}

#[test]
fn a_worker_that_stops_leaves_its_jobs_to_be_rescued() {
    let db = Db::new();
    let conn = &mut db.connect();
    let worker = register(conn);
    let id = any().enqueue(conn).unwrap().id;
    Job::find_new_job(conn, &worker).unwrap().unwrap();
    WorkerRow::unregister(conn, worker.id).unwrap();
    assert_eq!(job_core::housekeeping::rescue(conn, 10).unwrap(), [id]);
    db.assert_invariants();
}
