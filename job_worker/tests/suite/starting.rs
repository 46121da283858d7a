//! What keeps a worker from starting.

use super::stage::{Stage, Step, step, worker};
use super::{Conn, Db};
use diesel::r2d2::ConnectionManager;
use job_worker::{Worker, WorkerError};
use serde_json::json;
use std::time::Duration;

fn nothing(db: &Db) -> Worker<Conn, Stage> {
    worker(db, |_, _| Ok(json!(null)))
}

fn error(worker: Worker<Conn, Stage>) -> WorkerError {
    worker.run().unwrap_err()
}

#[test]
fn a_worker_that_could_do_nothing_says_so() {
    let db = Db::new();
    let no_kinds = Worker::<Conn, Stage>::new(db.manager(), Stage::new(|_, _| Ok(json!(null))));
    assert!(matches!(
        error(no_kinds.stop_on_signals(false)),
        WorkerError::NoKinds
    ));
    assert!(matches!(
        error(nothing(&db).queues::<&str>([])),
        WorkerError::NoQueues
    ));
    assert!(matches!(error(nothing(&db).threads(0)), WorkerError::NoThreads));
    let twice = error(nothing(&db).register::<Step>());
    assert!(matches!(twice, WorkerError::DuplicateKind("step")));
    for name in ["a\0b", "", &"x".repeat(256)] {
        let unnameable = error(nothing(&db).queues(["default", name]));
        assert!(matches!(unnameable, WorkerError::BadName(_)), "{unnameable}");
    }
    let hasty = nothing(&db)
        .heartbeat(Duration::from_secs(5))
        .rescue_after(Duration::from_secs(14));
    assert!(matches!(error(hasty), WorkerError::RescueTooSoon));
    let endless = nothing(&db).heartbeat(Duration::MAX);
    assert!(matches!(error(endless), WorkerError::RescueTooSoon));
    assert_eq!(db.count("SELECT count(*) FROM workers"), 0);
    db.assert_invariants();
}

#[test]
fn durations_without_end_and_without_length_are_taken() {
    let db = Db::new();
    step("one").enqueue(&mut db.connect()).unwrap();
    let short = nothing(&db).heartbeat(Duration::ZERO);
    let long = nothing(&db).rescue_after(Duration::MAX);
    for (worker, length) in [(short, Duration::ZERO), (long, Duration::MAX)] {
        worker
            .poll(length)
            .grace(length)
            .prune_after(length)
            .run_until_idle()
            .unwrap();
    }
    nothing(&db)
        .statement_timeout(Duration::MAX)
        .run_until_idle()
        .unwrap();
    db.assert_invariants();
}

#[test]
fn a_database_without_our_tables_is_refused() {
    let db = Db::empty();
    let error = error(nothing(&db));
    assert!(matches!(error, WorkerError::NotMigrated), "{error}");
    assert!(error.to_string().contains("migrate"), "{error}");
}

/// Case 55.
#[test]
fn a_newer_schema_is_refused() {
    let db = Db::new();
    db.execute("UPDATE job_schema_versions SET version = version + 1000");
    let newer = error(nothing(&db));
    assert!(matches!(newer, WorkerError::Schema(_)), "{newer}");
}

#[test]
fn a_database_that_is_not_there_is_named_without_its_password() {
    let there = Db::new();
    let (scheme, _) = there.url().split_once("://").unwrap_or(("", ""));
    let urls = if scheme.is_empty() {
        vec!["/no/such/folder/secret/jobs.sqlite3".to_owned()]
    } else {
        vec![
            format!("{scheme}://user:secret@127.0.0.1:1/db"),
            format!("{scheme}://user:secret@127.0.0.1:no-port/db"),
            format!("{scheme}:/user:secret@127.0.0.1/db"),
        ]
    };
    for url in urls {
        let worker =
            Worker::<Conn, Stage>::new(ConnectionManager::new(&url), Stage::new(|_, _| Ok(json!(null))))
                .register::<Step>()
                .stop_on_signals(false);
        let error = error(worker);
        assert!(matches!(error, WorkerError::Unreachable(_)), "{error}");
        let shown = format!("{error} {error:?}");
        assert!(!shown.contains("secret"), "{shown}");
    }
}
