use super::Db;
use super::stage::{Notes, Unknown, find, step, worker};
use anyhow::bail;
use job_core::{Job, Perform, Status};
use serde_json::json;
use std::time::Duration;

#[test]
fn a_run_until_idle_on_an_empty_database_ends() {
    let db = Db::new();
    let report = worker(&db, |_, _| Ok(json!(null))).run_until_idle().unwrap();
    assert_eq!(report.completed, 0);
    assert_eq!(db.count("SELECT count(*) FROM workers"), 0);
    db.assert_invariants();
}

#[test]
fn a_run_until_idle_performs_what_its_jobs_enqueue() {
    let (db, notes) = (Db::new(), Notes::default());
    step("3").enqueue(&mut db.connect()).unwrap();
    let (pool, noted) = (db.pool(4), notes.clone());
    let report = worker(&db, move |name, _| {
        noted.add(name);
        let left: u32 = name.parse()?;
        if left > 0 {
            let conn = &mut *pool.get()?;
            Job::enqueue_all(conn, (0..2).map(|_| step((left - 1).to_string())))?;
        }
        Ok(json!(null))
    })
    .run_until_idle()
    .unwrap();
    assert_eq!(report.completed, 15);
    assert_eq!(notes.all().iter().filter(|name| *name == "0").count(), 8);
    db.assert_invariants();
}

#[test]
fn a_run_until_idle_leaves_what_is_scheduled_for_later() {
    let db = Db::new();
    let conn = &mut db.connect();
    let later = step("later")
        .run_in(Duration::from_secs(3600))
        .enqueue(conn)
        .unwrap();
    let now = step("now").enqueue(conn).unwrap();
    worker(&db, |_, _| Ok(json!(null))).run_until_idle().unwrap();
    assert_eq!(find(&db, later.id).status(), Status::Scheduled);
    assert_eq!(find(&db, now.id).status(), Status::Completed);
    db.assert_invariants();
}

#[test]
fn a_run_until_idle_retries_at_once_what_need_not_wait() {
    let db = Db::new();
    let conn = &mut db.connect();
    let ids = Job::enqueue_all(conn, (0..10).map(|number| step(number.to_string()))).unwrap();
    let report = worker(&db, |_, _| bail!("no")).run_until_idle().unwrap();
    assert_eq!((report.retried, report.failed), (20, 10));
    for id in ids {
        let job = find(&db, id);
        assert_eq!((job.status(), job.attempts()), (Status::Failed, 3));
        assert_eq!(job.last_error(), Some("no"));
    }
    db.assert_invariants();
}

#[test]
fn a_run_until_idle_ends_in_front_of_jobs_that_are_not_its_own() {
    let db = Db::new();
    let conn = &mut db.connect();
    Unknown.enqueue(conn).unwrap();
    Unknown
        .job()
        .run_at(job_core::now(conn).unwrap())
        .enqueue(conn)
        .unwrap();
    step("elsewhere").queue("elsewhere").enqueue(conn).unwrap();
    let report = worker(&db, |_, _| Ok(json!(null))).run_until_idle().unwrap();
    assert_eq!(report.completed, 0);
    assert_eq!(Job::counts(conn).unwrap().of(Status::New), 3);
    db.assert_invariants();
}
