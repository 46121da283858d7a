use super::stage::{start, step, worker};
use super::{Conn, Db};
use crate::tools::capture;
use anyhow::bail;
use job_core::{Job, Status, cancel, fail_for_good};
use serde_json::json;

const SECRET: &str = "s3cret-of-a-job";

/// What a job was given, and what it said, stays in the database: the log is read by others.
#[test]
fn arguments_results_and_errors_never_reach_the_log() {
    capture::begin();
    let db = Db::new();
    let conn = &mut db.connect();
    let names = ["ok", "error", "panic", "cancel", "for good", "large", "late"];
    let jobs = names.map(|name| {
        step(format!("{name} {SECRET}"))
            .max_attempts(2)
            .unique(format!("{name} {SECRET}"))
    });
    let ids = Job::enqueue_all(conn, jobs).unwrap();
    worker(&db, |name, run| match name.trim_end_matches(SECRET).trim() {
        "error" => bail!("{SECRET} in an error"),
        "panic" => panic!("{SECRET} in a panic"),
        "cancel" => Err(cancel(SECRET)),
        "for good" => Err(fail_for_good(SECRET)),
        "large" => Ok(json!(SECRET.repeat(100_000))),
        "late" => {
            run.transaction(|_: &mut Conn| Ok(json!(SECRET)))?;
            bail!("{SECRET} after the end")
        }
        _ => Ok(json!(SECRET)),
    })
    .run_until_idle()
    .unwrap();
    assert_eq!(Job::counts(conn).unwrap().of(Status::Failed), 4);
    // A failure is logged by the job's id, of which other tests have the like.
    let failed = format!("job {} (step) failed", ids[1]);
    assert!(!capture::lines_with(&failed).is_empty());
    let leaks = capture::lines_with(SECRET);
    assert!(leaks.is_empty(), "{leaks:?}");
    db.assert_invariants();
}

/// Its jobs would wait for ever, without a word.
#[test]
fn a_kind_whose_queue_the_worker_does_not_look_at_is_warned_of() {
    capture::begin();
    let db = Db::new();
    let idle = |queues: &[&str]| {
        let worker = worker(&db, |_, _| Ok(json!(null))).queues(queues.iter().copied());
        worker.run_until_idle().unwrap();
    };
    idle(&["default", "warned-of-never"]);
    idle(&["warned-of-1", "warned-of-2"]);
    assert!(warnings("warned-of-never").is_empty());
    let lines = warnings("[\"warned-of-1\", \"warned-of-2\"]");
    assert!(!lines.is_empty());
    for part in ["kind step", "queue default", "add it to queues([…])"] {
        assert!(lines[0].contains(part), "{lines:?}");
    }
}

#[cfg(feature = "tokio")]
#[test]
fn an_async_kind_whose_queue_the_worker_does_not_look_at_is_warned_of() {
    capture::begin();
    let db = Db::new();
    let worker = super::scene::caller(&db, |_, _| async { Ok(json!(null)) });
    worker.queues(["warned-of-futures"]).run_until_idle().unwrap();
    let lines = warnings("warned-of-futures");
    assert!(lines.iter().any(|line| line.contains("kind call")), "{lines:?}");
}

fn warnings(text: &str) -> Vec<String> {
    let mut lines = capture::lines_with(text);
    lines.retain(|line| line.starts_with("WARN"));
    lines
}

#[test]
fn what_a_worker_was_is_logged_at_its_start_and_end() {
    capture::begin();
    let db = Db::new();
    let started = start(worker(&db, |_, _| Ok(json!(null))).queues(["a-queue-to-be-logged"]));
    started.stop();
    let starts = capture::lines_with("a-queue-to-be-logged");
    assert!(
        starts
            .iter()
            .any(|line| line.contains("INFO") && line.contains("\"step\"")),
        "{starts:?}"
    );
    assert!(!capture::lines_with("worker stopped: 0 completed").is_empty());
    db.assert_invariants();
}
