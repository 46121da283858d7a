//! Async jobs: how they end, and how many at once.

use super::scene::{Plain, call, caller, forever, hasty};
use super::stage::find;
use super::{Conn, Db};
use anyhow::bail;
use crossbeam_channel::unbounded;
use job_core::{Job, Perform, PerformAsync, Status, cancel, fail_for_good, snooze};
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
    let (tell, told) = unbounded();
    let report = caller(&db, move |name, _| {
        let tell = tell.clone();
        async move {
            match name.as_str() {
                "quick" => Ok(json!(null)),
                _ => forever(tell).await,
            }
        }
    })
    .run_until_idle()
    .unwrap();
    assert_eq!((report.completed, report.retried, report.failed), (1, 1, 1));
    assert_eq!(told.try_iter().filter(|what| *what == "dropped").count(), 2);
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
fn so_many_async_jobs_at_once_as_was_said_and_no_more() {
    let db = Db::new();
    let conn = &mut db.connect();
    Job::enqueue_all(conn, (0..100).map(|number| call(number.to_string()))).unwrap();
    let (now, most) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
    let greatest = Arc::clone(&most);
    // Ten must be here at once for any of them to go on.
    let ten = Arc::new(tokio::sync::Barrier::new(10));
    let report = caller(&db, move |_, _| {
        let (now, most, ten) = (Arc::clone(&now), Arc::clone(&greatest), Arc::clone(&ten));
        async move {
            most.fetch_max(now.fetch_add(1, Ordering::SeqCst) + 1, Ordering::SeqCst);
            ten.wait().await;
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
fn a_runtime_that_performs_no_jobs_is_refused() {
    let db = Db::new();
    let refusal = |runtime: &tokio::runtime::Runtime| {
        let worker = caller(&db, |_, _| async { Ok(json!(null)) }).runtime(runtime.handle().clone());
        worker.run_until_idle().unwrap_err().to_string()
    };
    let alone = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    assert!(refusal(&alone).contains("has no threads of its own"));
    let timeless = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(1)
        .build()
        .unwrap();
    assert!(refusal(&timeless).contains("has no timers"));
    assert_eq!(db.count("SELECT count(*) FROM workers"), 0);
}

#[test]
fn a_runtime_that_ends_before_the_worker_ends_the_worker() {
    let db = Db::new();
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(1)
        .enable_all()
        .build()
        .unwrap();
    let worker = caller(&db, |_, _| async { Ok(json!(null)) }).runtime(runtime.handle().clone());
    let conn = &mut db.connect();
    let first = call("while it lives").enqueue(conn).unwrap().id;
    let thread = std::thread::spawn(move || worker.run());
    super::stage::await_status(&db, first, Status::Completed);
    runtime.shutdown_background();
    let late = call("afterwards").enqueue(conn).unwrap().id;
    let error = thread.join().unwrap().unwrap_err();
    assert!(error.to_string().contains("has ended"), "{error}");
    assert_eq!(find(&db, late).status(), Status::New);
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
