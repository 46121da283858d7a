use super::Db;
use super::stage::{Started, find, start, step, worker};
use crossbeam_channel::{Receiver, Sender, bounded};
use job_core::{Job, Status, WorkerRow};
use job_test::eventually;
use serde_json::json;
use std::time::Duration;

/// A started worker with one thread, which is busy with a job until `end` is dropped; `ahead` jobs with one attempt each
/// were claimed with it and wait behind it.
struct Busy {
    started: Started,
    end: Sender<()>,
    blocker: i64,
    waiting: Vec<i64>,
}

fn busy(db: &Db, ahead: usize, grace: Duration) -> Busy {
    let conn = &mut db.connect();
    let (began, begun) = bounded::<()>(0);
    let (end, ended): (Sender<()>, Receiver<()>) = bounded(0);
    let quick = if ahead > 0 { 300 } else { 0 };
    Job::enqueue_all(conn, (0..quick).map(|_| step("quick"))).unwrap();
    let started = start(
        worker(db, move |name, _| {
            if name == "blocker" {
                began.send(())?;
                let _ = ended.recv();
            }
            Ok(json!(null))
        })
        .threads(1)
        .grace(grace),
    );
    // Quick jobs, so that the worker claims many at once.
    eventually("the quick jobs are done", || {
        Job::counts(conn).unwrap().of(Status::Completed) == quick
    });
    let jobs = std::iter::once("blocker").chain(std::iter::repeat_n("waiting", ahead));
    let mut ids = Job::enqueue_all(conn, jobs.map(|name| step(name).max_attempts(1))).unwrap();
    begun.recv().unwrap();
    let blocker = ids.remove(0);
    Busy {
        started,
        end,
        blocker,
        waiting: ids,
    }
}

fn assert_untouched(db: &Db, ids: &[i64]) {
    for &id in ids {
        let job = find(db, id);
        assert_eq!((job.status(), job.attempts()), (Status::New, 0));
    }
}

const LONG: Duration = Duration::MAX;

/// Case 16: what ends within the grace time is recorded, and the heart beats until then.
#[test]
fn a_stop_waits_for_running_jobs_and_records_them() {
    let db = Db::new();
    let conn = &mut db.connect();
    let busy = busy(&db, 0, LONG);
    busy.started.handle.stop();
    // Nothing is claimed any more, but the worker lives.
    let late = step("late").enqueue(conn).unwrap().id;
    let row = WorkerRow::list(conn).unwrap().remove(0);
    drop(busy.end);
    let report = busy.started.join();
    assert_eq!((report.completed, report.abandoned), (1, 0));
    assert_eq!(find(&db, busy.blocker).worker(), Some(row.id));
    assert_eq!(find(&db, busy.blocker).status(), Status::Completed);
    assert_untouched(&db, &[late]);
    assert!(WorkerRow::list(conn).unwrap().is_empty());
    db.assert_invariants();
}

#[test]
fn the_heart_beats_while_a_stop_waits() {
    let db = Db::new();
    let conn = &mut db.connect();
    let (began, begun) = bounded::<bool>(0);
    let (end, ended) = bounded::<()>(0);
    step("long").enqueue(conn).unwrap();
    let started = start(
        worker(&db, move |_, run| {
            began.send(run.is_stopping())?;
            let _ = ended.recv();
            began.send(run.is_stopping())?;
            Ok(json!(null))
        })
        .heartbeat(Duration::from_millis(20)),
    );
    assert!(!begun.recv().unwrap());
    started.handle.stop();
    let beat = WorkerRow::list(conn).unwrap()[0].beat_at;
    eventually("it beats on", || WorkerRow::list(conn).unwrap()[0].beat_at > beat);
    drop(end);
    assert!(begun.recv().unwrap(), "the job was told of the stop");
    assert_eq!(started.join().completed, 1);
    db.assert_invariants();
}

/// Case 15: with one attempt only, a job that was handed back uncharged lives on.
#[test]
fn unstarted_jobs_are_handed_back_uncharged() {
    let db = Db::new();
    let busy = busy(&db, 20, LONG);
    busy.started.handle.stop();
    drop(busy.end);
    let report = busy.started.join();
    // On a machine that is very busy, some of the quick ones had been handed back before.
    assert!(report.released >= 20 && report.abandoned == 0, "{report}");
    assert_untouched(&db, &busy.waiting);
    let report = worker(&db, |_, _| Ok(json!(null))).run_until_idle().unwrap();
    assert_eq!(report.completed, 20);
    db.assert_invariants();
}

/// Cases 15 and 17 together: the jobs behind one that ignores the stop have not lost anything by it.
#[test]
fn unstarted_jobs_behind_one_that_ignores_the_stop_are_handed_back_too() {
    let db = Db::new();
    let busy = busy(&db, 20, Duration::ZERO);
    let report = busy.started.stop();
    assert!(report.released >= 20 && report.abandoned == 1, "{report}");
    assert_untouched(&db, &busy.waiting);
    assert_eq!(find(&db, busy.blocker).status(), Status::Processing);
    db.assert_invariants();
}

/// Case 17.
#[test]
fn a_job_that_ignores_the_stop_is_left_to_rescue_after_the_grace_time() {
    let db = Db::new();
    let busy = busy(&db, 0, Duration::from_millis(10));
    let report = busy.started.stop();
    assert_eq!((report.completed, report.abandoned), (0, 1));
    // The worker's row stays until it is declared dead, since the job may still be running.
    assert_eq!(db.count("SELECT count(*) FROM workers"), 1);
    assert_eq!(find(&db, busy.blocker).status(), Status::Processing);
    drop(busy.end);
    db.assert_invariants();
}

#[test]
fn a_second_stop_does_not_wait() {
    let db = Db::new();
    let busy = busy(&db, 0, LONG);
    busy.started.handle.stop();
    let report = busy.started.stop();
    assert_eq!((report.completed, report.abandoned), (0, 1));
    drop(busy.end);
    db.assert_invariants();
}

#[test]
fn a_stop_before_the_start_is_not_lost() {
    let db = Db::new();
    let id = step("never").enqueue(&mut db.connect()).unwrap().id;
    let worker = worker(&db, |_, _| Ok(json!(null)));
    worker.handle().stop();
    let report = worker.run().unwrap();
    assert_eq!(report.completed, 0);
    assert_untouched(&db, &[id]);
    assert_eq!(db.count("SELECT count(*) FROM workers"), 0);
    db.assert_invariants();
}

/// Jobs that were claimed ahead do not wait for hours behind slow ones while another worker has nothing to do.
#[test]
fn jobs_behind_a_long_one_are_given_to_others() {
    let db = Db::new();
    let busy = busy(&db, 20, LONG);
    let other = worker(&db, |_, _| Ok(json!(null)));
    let other = start(other);
    let conn = &mut db.connect();
    eventually("the other one performs them", || {
        busy.waiting
            .iter()
            .all(|&id| Job::find(conn, id).unwrap().status() == Status::Completed)
    });
    assert_eq!(find(&db, busy.blocker).status(), Status::Processing);
    assert_eq!(other.stop().completed, 20);
    drop(busy.end);
    let report = busy.started.stop();
    assert_eq!(report.completed, 301);
    assert!(report.released >= 20, "{report}");
    db.assert_invariants();
}
