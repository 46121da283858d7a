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
    let (tell, told) = unbounded();
    let gate = Gate::closed();
    let inside = gate.clone();
    let started = start(caller(&db, move |name, _| {
        let (tell, gate) = (tell.clone(), inside.clone());
        async move {
            if name == "endless" {
                return forever(tell).await;
            }
            gate.pass().await;
            Ok(json!(null))
        }
    }));
    assert_eq!(told.recv(), Ok("begun"));
    Job::cancel(conn, ids[0], "no longer wanted").unwrap();
    assert_eq!(told.recv(), Ok("dropped"));
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
    let (tell, told) = unbounded();
    let started = start(caller(&db, move |_, run| {
        let tell = tell.clone();
        async move {
            match run.attempt() {
                1 => forever(tell).await,
                attempt => Ok(json!(attempt)),
            }
        }
    }));
    assert_eq!(told.recv(), Ok("begun"));
    db.execute("DELETE FROM workers");
    housekeeping::rescue(conn, 10).unwrap();
    super::stage::make_due(&db);
    assert_eq!(told.recv(), Ok("dropped"));
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
    let (tell, told) = unbounded();
    let (began, begun) = bounded(0);
    let started = start(
        caller(&db, move |_, run| {
            let (tell, began) = (tell.clone(), began.clone());
            async move {
                began.send(run.is_stopping())?;
                run.stopping().await;
                began.send(run.is_stopping())?;
                forever(tell).await
            }
        })
        .grace(Duration::MAX),
    );
    assert!(!begun.recv().unwrap());
    started.handle.stop();
    assert!(begun.recv().unwrap(), "the job was told of the stop");
    Job::cancel(conn, id, "enough").unwrap();
    let report = started.join();
    assert_eq!((report.refused, report.abandoned), (1, 0));
    assert_eq!(told.try_iter().last(), Some("dropped"));
    db.assert_invariants();
}

#[test]
fn a_stop_lets_async_jobs_end_and_starts_no_more() {
    let db = Db::new();
    let conn = &mut db.connect();
    let ids = Job::enqueue_all(conn, (0..20).map(|number| call(number.to_string()))).unwrap();
    let gate = Gate::closed();
    let inside = gate.clone();
    let (began, begun) = unbounded();
    let started = start(
        caller(&db, move |_, run| {
            let (gate, began) = (inside.clone(), began.clone());
            async move {
                began.send(())?;
                run.stopping().await;
                gate.pass().await;
                Ok(json!(null))
            }
        })
        .grace(Duration::MAX),
    );
    for _ in ids {
        begun.recv().unwrap();
    }
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
fn async_jobs_that_were_claimed_and_not_started_go_back_uncharged() {
    let db = Db::new();
    let conn = &mut db.connect();
    let names = std::iter::once("rude").chain(std::iter::repeat_n("waiting", 10));
    let mut ids = Job::enqueue_all(conn, names.map(|name| call(name).max_attempts(1))).unwrap();
    let (end, ended) = bounded::<()>(0);
    let started = start(
        caller(&db, move |name, _| {
            let ended = ended.clone();
            async move {
                if name == "rude" {
                    // It holds the only thread, so that the others do not start.
                    let _ = ended.recv();
                }
                Ok(json!(null))
            }
        })
        .async_threads(1)
        .grace(Duration::MAX),
    );
    await_status(&db, ids[10], Status::Processing);
    started.handle.stop();
    drop(end);
    let report = started.join();
    assert_eq!(
        (report.released, report.refused, report.abandoned),
        (11 - report.completed, 0, 0)
    );
    let rude = ids.remove(0);
    assert!([Status::Completed, Status::New].contains(&find(&db, rude).status()));
    for id in ids {
        assert_eq!(
            (find(&db, id).status(), find(&db, id).attempts()),
            (Status::New, 0)
        );
    }
    db.assert_invariants();
}

#[test]
fn what_does_not_end_in_time_is_dropped_and_left_to_rescue() {
    for (grace, calls) in [(Duration::ZERO, 1), (LONG, 2)] {
        let db = Db::new();
        let conn = &mut db.connect();
        let id = call("endless").enqueue(conn).unwrap().id;
        let (tell, told) = unbounded();
        let started = start(caller(&db, move |_, _| forever(tell.clone())).grace(grace));
        assert_eq!(told.recv(), Ok("begun"));
        for _ in 0..calls {
            started.handle.stop();
        }
        let report = started.join();
        assert_eq!((report.abandoned, report.refused), (1, 0));
        assert_eq!(told.recv(), Ok("dropped"));
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
    let (began, begun) = unbounded();
    let started = start(caller(&db, move |_, _| {
        let (began, ended) = (began.clone(), ended.clone());
        async move {
            began.send(())?;
            let _ = ended.recv();
            Ok(json!(null))
        }
    }));
    begun.recv().unwrap();
    started.handle.stop();
    started.handle.stop();
    assert_eq!(started.join().abandoned, 1);
    assert_eq!(find(&db, id).status(), Status::Processing);
    drop(end);
    db.assert_invariants();
}
