//! Async jobs: how they end, by themselves and from outside.

use super::scene::{Gate, Plain, call, caller, forever, hasty};
use super::stage::{await_status, find, start};
use super::{Conn, Db};
use anyhow::bail;
use crossbeam_channel::{bounded, unbounded};
use job_core::{Job, Perform, PerformAsync, Status, WorkerRow, cancel, fail_for_good, housekeeping, snooze};
use job_test::eventually;
use job_worker::WorkerError;
use serde_json::{Value, json};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

const LONG: Duration = Duration::from_secs(3600);

#[test]
fn every_end_of_an_async_job_is_recorded() {
    let db = Db::new();
    let conn = &mut db.connect();
    let names = ["fine", "flaky", "bad", "gone", "later", "stolen"];
    let ids = Job::enqueue_all(conn, names.map(call)).unwrap();
    let report = caller(&db, |name, run| async move {
        tokio::task::yield_now().await;
        match name.as_str() {
            "flaky" if run.attempt() == 1 => bail!("not yet"),
            "bad" => bail!("never (last: {})", run.is_last_attempt()),
            "gone" => Err(cancel("the order was deleted")),
            "later" => Err(snooze(LONG)),
            "stolen" => Err(fail_for_good("the card was stolen")),
            _ => Ok(json!({ "name": name, "job": run.job_id() })),
        }
    })
    .run_until_idle()
    .unwrap();
    assert_eq!(
        (
            report.completed,
            report.retried,
            report.failed,
            report.cancelled,
            report.snoozed
        ),
        (2, 3, 2, 1, 1),
        "{report}"
    );
    let jobs: Vec<Job> = ids.iter().map(|&id| find(&db, id)).collect();
    let ends: Vec<_> = jobs.iter().map(|job| (job.status(), job.attempts())).collect();
    assert_eq!(
        ends,
        [
            (Status::Completed, 1),
            (Status::Completed, 2),
            (Status::Failed, 3),
            (Status::Cancelled, 1),
            (Status::Scheduled, 0),
            (Status::Failed, 1),
        ]
    );
    assert_eq!(
        jobs[0].output::<Value>().unwrap(),
        json!({ "name": "fine", "job": ids[0] })
    );
    assert_eq!(jobs[2].last_error(), Some("never (last: true)"));
    assert_eq!(jobs[3].last_error(), Some("the order was deleted"));
    db.assert_invariants();
}

#[test]
fn arguments_that_cannot_be_read_are_a_failure() {
    let db = Db::new();
    let id = call("x").max_attempts(1).enqueue(&mut db.connect()).unwrap().id;
    db.execute("UPDATE jobs SET args = '{\"a\":1}'");
    let report = caller(&db, |_, _| async { Ok(json!(null)) })
        .run_until_idle()
        .unwrap();
    assert_eq!(report.failed, 1);
    assert!(find(&db, id).last_error().unwrap().contains("arguments"));
    db.assert_invariants();
}

#[test]
fn at_the_timeout_the_future_is_dropped_and_the_attempt_has_failed() {
    let db = Db::new();
    let conn = &mut db.connect();
    let once = hasty("slow").enqueue(conn).unwrap().id;
    let twice = hasty("slow").max_attempts(2).enqueue(conn).unwrap().id;
    let quick = hasty("quick").enqueue(conn).unwrap().id;
    let (dropped, drops) = unbounded();
    let report = caller(&db, move |name, _| {
        let dropped = dropped.clone();
        async move {
            match name.as_str() {
                "quick" => Ok(json!(null)),
                _ => forever(dropped).await,
            }
        }
    })
    .run_until_idle()
    .unwrap();
    assert_eq!((report.completed, report.retried, report.failed), (1, 1, 1));
    assert_eq!(drops.len(), 2);
    assert_eq!(find(&db, once).status(), Status::Failed);
    assert_eq!(find(&db, once).last_error(), Some("timed out after 30ms"));
    // Charged as any failure.
    assert_eq!(
        (find(&db, twice).status(), find(&db, twice).attempts()),
        (Status::Scheduled, 1)
    );
    assert_eq!(find(&db, quick).status(), Status::Completed);
    db.assert_invariants();
}

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
fn panics_of_async_jobs_are_failures() {
    struct Bomb;
    impl Drop for Bomb {
        fn drop(&mut self) {
            panic!("while it was dropped");
        }
    }
    let db = Db::new();
    let conn = &mut db.connect();
    let at_once = call("at once").max_attempts(1).enqueue(conn).unwrap().id;
    let later = call("later").max_attempts(1).enqueue(conn).unwrap().id;
    let end = call("end").max_attempts(1).enqueue(conn).unwrap().id;
    let dropped = hasty("dropped").enqueue(conn).unwrap().id;
    let fine = call("fine").enqueue(conn).unwrap().id;
    let report = caller(&db, |name, _| {
        assert_ne!(name, "at once");
        async move {
            let _bomb = matches!(name.as_str(), "dropped" | "end").then(|| Bomb);
            tokio::task::yield_now().await;
            match name.as_str() {
                "later" => panic!("after a wait"),
                "dropped" => std::future::pending::<()>().await,
                _ => {}
            }
            Ok(json!(null))
        }
    })
    .run_until_idle()
    .unwrap();
    assert_eq!((report.completed, report.failed), (1, 4));
    let error = |id| find(&db, id).last_error().unwrap().to_owned();
    assert!(error(at_once).starts_with("panicked: assertion"));
    assert_eq!(error(later), "panicked: after a wait");
    assert_eq!(error(end), "panicked: while it was dropped");
    assert_eq!(error(dropped), "timed out after 30ms");
    assert_eq!(find(&db, fine).status(), Status::Completed);
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

#[test]
fn so_many_async_jobs_at_once_as_was_said_and_no_more() {
    let db = Db::new();
    let conn = &mut db.connect();
    Job::enqueue_all(conn, (0..100).map(|number| call(number.to_string()))).unwrap();
    let (now, most) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
    let greatest = Arc::clone(&most);
    let report = caller(&db, move |_, _| {
        let (now, most) = (Arc::clone(&now), Arc::clone(&greatest));
        async move {
            most.fetch_max(now.fetch_add(1, Ordering::SeqCst) + 1, Ordering::SeqCst);
            tokio::time::sleep(Duration::from_millis(5)).await;
            now.fetch_sub(1, Ordering::SeqCst);
            Ok(json!(null))
        }
    })
    .async_jobs(10)
    .run_until_idle()
    .unwrap();
    assert_eq!(report.completed, 100);
    assert_eq!(most.load(Ordering::SeqCst), 10);
    db.assert_invariants();
}

#[test]
fn a_worker_may_use_a_runtime_of_the_apps() {
    let db = Db::new();
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(1)
        .thread_name("the-apps")
        .enable_all()
        .build()
        .unwrap();
    let id = call("x").enqueue(&mut db.connect()).unwrap().id;
    let report = caller(&db, |_, _| async {
        tokio::time::sleep(Duration::from_millis(1)).await;
        Ok(json!(std::thread::current().name()))
    })
    .runtime(runtime.handle().clone())
    .run_until_idle()
    .unwrap();
    assert_eq!(report.completed, 1);
    assert_eq!(find(&db, id).output::<String>().unwrap(), "the-apps");
    // It is still there.
    runtime.block_on(async { tokio::time::sleep(Duration::from_millis(1)).await });
    db.assert_invariants();
}

#[test]
fn what_could_perform_no_async_job_is_refused() {
    let db = Db::new();
    let worker = || caller(&db, |_, _| async { Ok(json!(null)) });
    let error = |worker: job_worker::Worker<Conn, _>| worker.run_until_idle().unwrap_err();
    assert!(matches!(
        error(worker().async_jobs(0)),
        WorkerError::NoAsync("async_jobs")
    ));
    assert!(matches!(
        error(worker().async_threads(0)),
        WorkerError::NoAsync("async_threads")
    ));
    let twice = worker().register_async::<super::scene::Call>();
    assert!(matches!(error(twice), WorkerError::DuplicateKind("call")));
    // Of both sorts, the name is still one.
    #[derive(serde::Serialize, serde::Deserialize)]
    struct Twin;
    impl PerformAsync for Twin {
        const KIND: &'static str = Plain::KIND;
        type Context = super::scene::Scene;
        type Output = ();
        async fn perform(&self, _: &job_core::RunAsync<Self::Context>) -> anyhow::Result<()> {
            Ok(())
        }
    }
    let twins = worker().register::<Plain>().register_async::<Twin>();
    assert!(matches!(error(twins), WorkerError::DuplicateKind("plain")));
    // Without jobs for threads, none are needed.
    worker().threads(0).run_until_idle().unwrap();
    assert!(matches!(
        error(worker().threads(0).register::<Plain>()),
        WorkerError::NoThreads
    ));
}
