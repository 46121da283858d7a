//! Async jobs that do not come to their end by themselves: a stop, a cancellation, a rescue.

use super::Db;
use super::scene::{Gate, call, caller, forever};
use super::stage::{await_status, find, start};
use crossbeam_channel::{bounded, unbounded};
use job_core::{Job, Status, WorkerRow, housekeeping};
use serde_json::json;
use std::time::Duration;

const LONG: Duration = Duration::from_secs(3600);

#[test]
fn a_cancelled_job_is_dropped_while_the_others_go_on() {
    let db = Db::new();
    let conn = &mut db.connect();
    let ids = Job::enqueue_all(conn, ["endless", "waiting"].map(call)).unwrap();
    let (dropped, drops) = unbounded();
    let gate = Gate::closed();
    let inside = gate.clone();
    let started = start(caller(&db, move |name, _| {
        let (dropped, gate) = (dropped.clone(), inside.clone());
        async move {
            if name == "endless" {
                return forever(dropped).await;
            }
            gate.pass().await;
            Ok(json!(null))
        }
    }));
    for &id in &ids {
        await_status(&db, id, Status::Processing);
    }
    Job::cancel(conn, ids[0], "no longer wanted").unwrap();
    drops.recv().unwrap();
    gate.open();
    await_status(&db, ids[1], Status::Completed);
    let report = started.stop();
    assert_eq!((report.completed, report.refused, report.abandoned), (1, 1, 0));
    assert_eq!(find(&db, ids[0]).last_error(), Some("no longer wanted"));
    db.assert_invariants();
}

#[test]
fn the_jobs_of_a_worker_that_was_declared_dead_are_dropped_and_performed_again() {
    let db = Db::new();
    let conn = &mut db.connect();
    let id = call("rescued").enqueue(conn).unwrap().id;
    let (dropped, drops) = unbounded();
    let started = start(caller(&db, move |_, run| {
        let dropped = dropped.clone();
        async move {
            match run.attempt() {
                1 => forever(dropped).await,
                attempt => Ok(json!(attempt)),
            }
        }
    }));
    await_status(&db, id, Status::Processing);
    db.execute("DELETE FROM workers");
    housekeeping::rescue(conn, 10).unwrap();
    super::stage::make_due(&db);
    drops.recv().unwrap();
    await_status(&db, id, Status::Completed);
    let report = started.stop();
    assert_eq!((report.completed, report.refused), (1, 1));
    assert_eq!(find(&db, id).attempts(), 2);
    db.assert_invariants();
}

#[test]
fn a_job_that_is_cancelled_during_the_grace_time_does_not_hold_the_stop() {
    let db = Db::new();
    let conn = &mut db.connect();
    let id = call("endless").enqueue(conn).unwrap().id;
    let (dropped, drops) = unbounded();
    let (began, begun) = bounded(0);
    let started = start(
        caller(&db, move |_, run| {
            let (dropped, began) = (dropped.clone(), began.clone());
            async move {
                run.stopping().await;
                began.send(run.is_stopping())?;
                forever(dropped).await
            }
        })
        .grace(Duration::MAX),
    );
    await_status(&db, id, Status::Processing);
    started.handle.stop();
    assert!(begun.recv().unwrap(), "the job was told of the stop");
    Job::cancel(conn, id, "enough").unwrap();
    let report = started.join();
    assert_eq!((report.refused, report.abandoned, drops.len()), (1, 0, 1));
    db.assert_invariants();
}

#[test]
fn a_stop_lets_async_jobs_end_and_starts_no_more() {
    let db = Db::new();
    let conn = &mut db.connect();
    let ids = Job::enqueue_all(conn, (0..20).map(|number| call(number.to_string()))).unwrap();
    let gate = Gate::closed();
    let inside = gate.clone();
    let started = start(
        caller(&db, move |_, run| {
            let gate = inside.clone();
            async move {
                run.stopping().await;
                gate.pass().await;
                Ok(json!(null))
            }
        })
        .grace(Duration::MAX),
    );
    await_status(&db, ids[19], Status::Processing);
    started.handle.stop();
    let late = call("late").enqueue(conn).unwrap().id;
    assert_eq!(WorkerRow::list(conn).unwrap().len(), 1);
    gate.open();
    let report = started.join();
    assert_eq!((report.completed, report.abandoned), (20, 0));
    assert_eq!(
        (find(&db, late).status(), find(&db, late).attempts()),
        (Status::New, 0)
    );
    assert!(WorkerRow::list(conn).unwrap().is_empty());
    db.assert_invariants();
}

#[test]
fn what_does_not_end_in_time_is_dropped_and_left_to_rescue() {
    for (grace, calls) in [(Duration::ZERO, 1), (LONG, 2)] {
        let db = Db::new();
        let conn = &mut db.connect();
        let id = call("endless").enqueue(conn).unwrap().id;
        let (dropped, drops) = unbounded();
        let started = start(caller(&db, move |_, _| forever(dropped.clone())).grace(grace));
        await_status(&db, id, Status::Processing);
        for _ in 0..calls {
            started.handle.stop();
        }
        let report = started.join();
        assert_eq!((report.abandoned, report.refused), (1, 0));
        drops.recv().unwrap();
        // Its row stays: what it left is rescued when it is declared dead.
        assert_eq!(WorkerRow::list(conn).unwrap().len(), 1);
        assert_eq!(find(&db, id).status(), Status::Processing);
        db.execute("DELETE FROM workers");
        assert_eq!(housekeeping::rescue(conn, 10).unwrap(), [id]);
        assert_eq!(find(&db, id).attempts(), 1);
        db.assert_invariants();
    }
}

#[test]
fn a_job_that_holds_its_thread_does_not_hold_the_stop() {
    let db = Db::new();
    let conn = &mut db.connect();
    let id = call("rude").enqueue(conn).unwrap().id;
    let (end, ended) = bounded::<()>(0);
    let started = start(caller(&db, move |_, _| {
        let ended = ended.clone();
        async move {
            let _ = ended.recv();
            Ok(json!(null))
        }
    }));
    await_status(&db, id, Status::Processing);
    started.handle.stop();
    started.handle.stop();
    assert_eq!(started.join().abandoned, 1);
    drop(end);
    db.assert_invariants();
}
