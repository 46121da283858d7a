use super::Db;
use super::stage::{Notes, Unknown, await_status, find, make_due, start, step, worker};
use anyhow::bail;
use diesel::Connection;
use job_core::{Job, Perform, Status};
use serde_json::json;
use std::time::Duration;

#[test]
fn a_job_goes_from_a_transaction_to_a_worker_and_back() {
    let db = Db::new();
    let started = start(worker(&db, |name, _| Ok(json!({ "hello": name }))));
    let conn = &mut db.connect();
    let job = conn
        .transaction(|conn| step("world").enqueue(conn))
        .map_err(|error: job_core::EnqueueError| error)
        .unwrap();
    await_status(&db, job.id, Status::Completed);
    let job = Job::find(conn, job.id).unwrap();
    assert_eq!(
        job.output::<serde_json::Value>().unwrap(),
        json!({ "hello": "world" })
    );
    assert_eq!(job.attempts(), 1);
    assert_eq!(started.stop().completed, 1);
    assert_eq!(db.count("SELECT count(*) FROM workers"), 0);
    db.assert_invariants();
}

#[test]
fn queues_have_their_turn_in_the_order_of_their_importance() {
    let (db, notes) = (Db::new(), Notes::default());
    let conn = &mut db.connect();
    for queue in ["default", "elsewhere", "mail", "urgent"] {
        Job::enqueue_all(conn, (0..3).map(|_| step(queue).queue(queue))).unwrap();
    }
    let noted = notes.clone();
    let report = worker(&db, move |name, _| {
        noted.add(name);
        Ok(json!(null))
    })
    .queues(["urgent", "mail", "default"])
    .threads(1)
    .run_until_idle()
    .unwrap();
    assert_eq!(report.completed, 9);
    assert_eq!(
        notes.all(),
        ["urgent"; 3]
            .into_iter()
            .chain(["mail"; 3])
            .chain(["default"; 3])
            .collect::<Vec<_>>()
    );
    assert_eq!(Job::counts_in(conn, "elsewhere").unwrap().of(Status::New), 3);
    db.assert_invariants();
}

#[test]
fn the_lower_priority_goes_first_and_then_the_order_of_arrival() {
    let (db, notes) = (Db::new(), Notes::default());
    let conn = &mut db.connect();
    for (name, priority) in [("c", 7), ("a", -5), ("d", 7), ("b", 0)] {
        step(name).priority(priority).enqueue(conn).unwrap();
    }
    let noted = notes.clone();
    worker(&db, move |name, _| {
        noted.add(name);
        Ok(json!(null))
    })
    .threads(1)
    .run_until_idle()
    .unwrap();
    assert_eq!(notes.all(), ["a", "b", "c", "d"]);
    db.assert_invariants();
}

#[test]
fn a_scheduled_job_is_performed_when_it_is_due() {
    let db = Db::new();
    let conn = &mut db.connect();
    let soon = step("soon")
        .run_in(Duration::from_millis(50))
        .enqueue(conn)
        .unwrap();
    let late = step("late")
        .run_in(Duration::from_secs(3600))
        .enqueue(conn)
        .unwrap();
    assert_eq!(soon.status(), Status::Scheduled);
    let started = start(worker(&db, |_, _| Ok(json!(null))));
    await_status(&db, soon.id, Status::Completed);
    assert_eq!(find(&db, late.id).status(), Status::Scheduled);
    // The database's clock decides, and by it the other one is due now.
    make_due(&db);
    await_status(&db, late.id, Status::Completed);
    assert_eq!(started.stop().completed, 2);
    db.assert_invariants();
}

#[test]
fn a_failed_attempt_is_tried_again_and_its_error_is_kept() {
    let db = Db::new();
    let conn = &mut db.connect();
    let job = step("third time lucky").enqueue(conn).unwrap();
    let report = worker(&db, |_, run| {
        if run.attempt() < 3 {
            assert!(!run.is_last_attempt());
            bail!("attempt {} failed", run.attempt());
        }
        assert!(run.is_last_attempt());
        Ok(json!("done"))
    })
    .run_until_idle()
    .unwrap();
    assert_eq!((report.retried, report.completed), (2, 1));
    let job = Job::find(conn, job.id).unwrap();
    assert_eq!((job.status(), job.attempts()), (Status::Completed, 3));
    let errors: Vec<String> = job
        .failures(conn)
        .unwrap()
        .into_iter()
        .map(|failure| failure.error)
        .collect();
    assert_eq!(errors, ["attempt 1 failed", "attempt 2 failed"]);
    db.assert_invariants();
}

/// Case 4: a worker claims only what it can perform, and a heap of what nobody has does not stop the others.
#[test]
fn only_registered_kinds_are_claimed_whatever_stands_in_front() {
    let db = Db::new();
    let conn = &mut db.connect();
    Job::enqueue_all(conn, (0..5_000).map(|_| Unknown.job())).unwrap();
    Job::enqueue_all(conn, (0..20).map(|number| step(number.to_string()))).unwrap();
    let report = worker(&db, |_, _| Ok(json!(null))).run_until_idle().unwrap();
    assert_eq!((report.completed, report.failed, report.retried), (20, 0, 0));
    let counts = Job::counts(conn).unwrap();
    assert_eq!(
        (counts.of(Status::New), counts.of(Status::Completed)),
        (5_000, 20)
    );
    db.assert_invariants();
}
