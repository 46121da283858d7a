use super::stage::{Notes, await_status, find, make_due, start, step, worker};
use super::{Conn, Db};
use crossbeam_channel::bounded;
use job_core::{Job, Status, WorkerRow, housekeeping, now};
use job_test::eventually;
use serde_json::json;
use std::time::Duration;

fn ids_of_workers(db: &Db) -> Vec<i64> {
    db.bigints("SELECT id FROM workers ORDER BY id")
}

/// Case 11: who is alive is told by the heartbeat, not by the age of a job.
#[test]
fn a_job_longer_than_the_rescue_time_is_performed_once() {
    let (db, notes) = (Db::new(), Notes::default());
    let conn = &mut db.connect();
    let (began, begun) = bounded::<()>(0);
    let (end, ended) = bounded::<()>(0);
    let (age, beat) = (Duration::from_secs(2), Duration::from_millis(100));
    let id = step("long").enqueue(conn).unwrap().id;
    let noted = notes.clone();
    let first = start(
        worker(&db, move |name, _| {
            noted.add(name);
            began.send(())?;
            let _ = ended.recv();
            Ok(json!(null))
        })
        .heartbeat(beat)
        .rescue_after(age),
    );
    begun.recv().unwrap();
    let second = start(
        worker(&db, |_, _| panic!("performed twice"))
            .heartbeat(beat)
            .rescue_after(age),
    );
    let started_at = find(&db, id).started_at().unwrap();
    eventually("the job is older than the rescue time", || {
        (now(conn).unwrap() - started_at).to_std().unwrap() > age + beat
    });
    drop(end);
    let (first, second) = (first.stop(), second.stop());
    assert_eq!((first.completed, first.refused, second.rescued), (1, 0, 0));
    assert_eq!(notes.all(), ["long"]);
    db.assert_invariants();
}

/// Case 12, and invariant 4: the one who lost a job cannot complete it.
#[test]
fn a_completion_after_a_rescue_is_refused_and_counted() {
    let db = Db::new();
    let conn = &mut db.connect();
    let (began, begun) = bounded::<()>(0);
    let (go, gone) = bounded::<()>(0);
    let id = step("slow").enqueue(conn).unwrap().id;
    let started = start(
        worker(&db, move |_, run| {
            began.send(())?;
            gone.recv()?;
            Ok(json!(run.attempt()))
        })
        .heartbeat(Duration::from_millis(20)),
    );
    begun.recv().unwrap();
    let old = ids_of_workers(&db);
    db.execute("DELETE FROM workers");
    housekeeping::rescue(conn, 10).unwrap();
    // A declared dead worker finds out and goes on under a new id, also with the rescued job.
    eventually("it has another id", || {
        !ids_of_workers(&db).is_empty() && ids_of_workers(&db) != old
    });
    assert_eq!(find(&db, id).status(), Status::Scheduled);
    make_due(&db);
    begun.recv().unwrap();
    go.send(()).unwrap();
    go.send(()).unwrap();
    await_status(&db, id, Status::Completed);
    let report = started.stop();
    assert_eq!((report.completed, report.refused), (1, 1));
    let job = find(&db, id);
    assert_eq!((job.output::<i32>().unwrap(), job.attempts()), (2, 2));
    assert_eq!(job.failures(conn).unwrap().len(), 1);
    db.assert_invariants();
}

/// Case 13: what a dead worker held is taken back, though the worker of the same machine is alive.
#[test]
fn jobs_of_a_dead_worker_of_the_same_machine_are_rescued() {
    let db = Db::new();
    let conn = &mut db.connect();
    let kinds = ["step".to_owned()];
    let dead = WorkerRow::register(conn, &["default".to_owned()], &kinds).unwrap();
    let id = step("lost").enqueue(conn).unwrap().id;
    assert_eq!(Job::find_new_job(conn, &dead).unwrap().unwrap().id(), id);
    let started = start(
        worker(&db, |_, _| Ok(json!(null)))
            .heartbeat(Duration::from_millis(50))
            .rescue_after(Duration::from_millis(300)),
    );
    await_status(&db, id, Status::Scheduled);
    let job = find(&db, id);
    assert_eq!(job.attempts(), 1, "a rescue stays charged");
    assert!(job.last_error().unwrap().contains("died"));
    make_due(&db);
    await_status(&db, id, Status::Completed);
    let report = started.stop();
    assert_eq!((report.rescued, report.completed), (1, 1));
    db.assert_invariants();
}

/// Case 14: a job that takes its worker with it ends within its attempts.
#[test]
fn a_job_whose_workers_die_ends_within_its_attempts() {
    let db = Db::new();
    let conn = &mut db.connect();
    let id = step("deadly").enqueue(conn).unwrap().id;
    for attempt in 1..=3 {
        let doomed = WorkerRow::register(conn, &["default".to_owned()], &["step".to_owned()]).unwrap();
        assert_eq!(
            Job::find_new_job(conn, &doomed).unwrap().unwrap().attempt(),
            attempt
        );
        WorkerRow::unregister(conn, doomed.id).unwrap();
        let started = start(
            worker(&db, |_, _| panic!("it is not for this worker"))
                .queues(["elsewhere"])
                .heartbeat(Duration::from_millis(20)),
        );
        let status = if attempt < 3 {
            Status::Scheduled
        } else {
            Status::Failed
        };
        await_status(&db, id, status);
        assert_eq!(started.stop().rescued, 1);
        if attempt < 3 {
            make_due(&db);
            housekeeping::promote(conn, 10).unwrap();
        }
    }
    let job = find(&db, id);
    assert_eq!((job.status(), job.attempts()), (Status::Failed, 3));
    db.assert_invariants();
}

/// Case 19: jobs that hold every connection of the pool do not stop the heart.
#[test]
fn the_heart_needs_no_connection_of_the_jobs() {
    let db = Db::new();
    let conn = &mut db.connect();
    let (began, begun) = bounded::<()>(0);
    let (end, ended) = bounded::<()>(0);
    Job::enqueue_all(conn, (0..2).map(|_| step("hold"))).unwrap();
    let started = start(
        worker(&db, move |_, run| {
            run.connection(|_: &mut Conn| {
                began.send(())?;
                let _ = ended.recv();
                Ok(json!(null))
            })
        })
        .threads(2)
        .pool(db.pool(2))
        .heartbeat(Duration::from_millis(20)),
    );
    for _ in 0..2 {
        begun.recv().unwrap();
    }
    for _ in 0..3 {
        let beat = WorkerRow::list(conn).unwrap()[0].beat_at;
        eventually("it beats", || WorkerRow::list(conn).unwrap()[0].beat_at > beat);
    }
    drop(end);
    assert_eq!(started.stop().completed, 2);
    db.assert_invariants();
}
