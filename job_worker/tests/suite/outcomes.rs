use super::stage::{Stage, find, make_due, start, step, worker};
use super::{Conn, Db};
use anyhow::{Context as _, bail};
use chrono::{DateTime, Utc};
use job_core::{Job, Perform, Run, Status, cancel, fail_for_good, snooze, snooze_until};
use job_worker::Worker;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use std::time::Duration;

/// Performs one step once, and gives the job as it stands then.
fn perform_once(
    db: &Db,
    body: impl Fn(&str, &Run<'_, Stage>) -> anyhow::Result<Value> + Send + Sync + 'static,
) -> Job {
    let id = step("one").enqueue(&mut db.connect()).unwrap().id;
    worker(db, body).run_until_idle().unwrap();
    db.assert_invariants();
    find(db, id)
}

#[test]
fn an_error_is_kept_with_its_causes() {
    let db = Db::new();
    let job = perform_once(&db, |_, _| {
        Err(anyhow::anyhow!("the disk is full")).context("could not write the report")
    });
    assert_eq!((job.status(), job.attempts()), (Status::Failed, 3));
    assert_eq!(
        job.last_error(),
        Some("could not write the report: the disk is full")
    );
    assert_eq!(job.failures(&mut db.connect()).unwrap().len(), 3);
}

/// Case 30.
#[test]
fn a_job_can_end_itself_as_cancelled() {
    let db = Db::new();
    let job = perform_once(&db, |_, _| {
        Err(cancel("the order was deleted")).context("in step 2")
    });
    assert_eq!((job.status(), job.attempts()), (Status::Cancelled, 1));
    assert_eq!(job.last_error(), Some("the order was deleted"));
}

#[test]
fn a_job_can_fail_for_good() {
    let db = Db::new();
    let job = perform_once(&db, |_, _| {
        Err(fail_for_good("no such card")).context("in step 2")
    });
    assert_eq!((job.status(), job.attempts()), (Status::Failed, 1));
    assert_eq!(job.last_error(), Some("no such card"));
}

#[test]
fn a_job_can_snooze_uncharged() {
    let db = Db::new();
    let conn = &mut db.connect();
    let first = step("in").enqueue(conn).unwrap().id;
    let second = step("until").enqueue(conn).unwrap().id;
    let far: DateTime<Utc> = "2999-01-01T00:00:00Z".parse().unwrap();
    let sleepy = move |name: &str, _: &Run<'_, Stage>| match name {
        "in" => Err(snooze(Duration::from_secs(3600))).context("in step 2"),
        _ => Err(snooze_until(far)).context("in step 2"),
    };
    // Far more often than it may fail.
    for round in 1..=5 {
        let report = worker(&db, sleepy).run_until_idle().unwrap();
        assert_eq!((report.snoozed, report.retried), (2, 0), "round {round}");
        make_due(&db);
    }
    worker(&db, sleepy).run_until_idle().unwrap();
    let (first, second) = (find(&db, first), find(&db, second));
    assert_eq!((first.status(), first.attempts()), (Status::Scheduled, 0));
    assert_eq!((second.status(), second.attempts()), (Status::Scheduled, 0));
    assert_eq!(second.run_at(), Some(far));
    assert!(first.failures(conn).unwrap().is_empty());
    db.assert_invariants();
}

/// The kind of the steps, as a newer version of the app enqueues it.
#[derive(Serialize, Deserialize)]
struct NewerStep {
    name: String,
}

impl Perform for NewerStep {
    const KIND: &'static str = "step";
    type Context = Stage;
    type Output = ();
    fn perform(&self, _: &Run<'_, Stage>) -> anyhow::Result<()> {
        unreachable!("only enqueued")
    }
}

/// Case 28.
#[test]
fn arguments_that_do_not_decode_fail_through_the_budget_and_alone() {
    let db = Db::new();
    let conn = &mut db.connect();
    let odd = NewerStep { name: "x".into() };
    let jobs = [step("a"), odd.job().max_attempts(2), step("b")];
    let ids = Job::enqueue_all(conn, jobs).unwrap();
    let report = worker(&db, |_, _| Ok(json!(null))).run_until_idle().unwrap();
    assert_eq!((report.completed, report.retried, report.failed), (2, 1, 1));
    let job = find(&db, ids[1]);
    assert_eq!((job.status(), job.attempts()), (Status::Failed, 2));
    let error = job.last_error().unwrap();
    assert!(error.contains("does not decode"), "{error}");
    db.assert_invariants();
}

/// Case 26: recording an error never fails.
#[test]
fn any_text_can_be_an_error() {
    let db = Db::new();
    let conn = &mut db.connect();
    let texts = ["nul", "crab 🦀", "", " \n", "\u{1b}[31mred", "10 MB"];
    let ids = Job::enqueue_all(conn, texts.map(step)).unwrap();
    let report = worker(&db, |name, _| match name {
        "nul" => bail!("nul \0 in it"),
        "10 MB" => bail!("🦀".repeat(10_000_000 / 4)),
        _ => bail!(name.to_owned()),
    })
    .run_until_idle()
    .unwrap();
    assert_eq!((report.retried, report.failed), (12, 6));
    let errors: Vec<String> = ids
        .iter()
        .map(|&id| find(&db, id).last_error().unwrap().to_owned())
        .collect();
    assert_eq!(errors[0], "nul \u{fffd} in it");
    assert_eq!(errors[1], "crab 🦀");
    assert_eq!(errors[2], "(an error without a message)");
    assert_eq!(errors[3], "(an error without a message)");
    assert_eq!(errors[4], "\u{1b}[31mred");
    assert!(errors[5].starts_with("🦀🦀") && errors[5].ends_with("bytes more)"));
    db.assert_invariants();
}

/// Case 27 and its kind: a result that cannot be kept ends the job with a reason.
#[test]
fn a_result_that_cannot_be_kept_ends_the_job_with_a_reason() {
    let db = Db::new();
    let conn = &mut db.connect();
    let ids = Job::enqueue_all(conn, ["large", "nul", "deep", "fine"].map(step)).unwrap();
    worker(&db, |name, _| {
        Ok(match name {
            "large" => json!("x".repeat(2 << 20)),
            "nul" => json!("a\0b"),
            "deep" => (0..100).fold(json!(1), |inner, _| json!([inner])),
            _ => json!("fine"),
        })
    })
    .run_until_idle()
    .unwrap();
    let jobs: Vec<Job> = ids.into_iter().map(|id| find(&db, id)).collect();
    assert_eq!((jobs[0].status(), jobs[0].attempts()), (Status::Failed, 1));
    assert!(jobs[0].last_error().unwrap().contains("2097154 bytes"));
    // What the database cannot hold ends with a reason; what it can is read back as it was.
    for (job, result) in [
        (&jobs[1], json!("a\0b")),
        (&jobs[2], (0..100).fold(json!(1), |inner, _| json!([inner]))),
    ] {
        match job.status() {
            Status::Completed => assert_eq!(job.output::<Value>().unwrap(), result),
            status => {
                assert_eq!((status, job.attempts()), (Status::Failed, 1));
                assert!(!job.last_error().unwrap().is_empty());
            }
        }
    }
    assert_eq!(jobs[3].output::<Value>().unwrap(), json!("fine"));
    db.assert_invariants();
}

/// A kind whose own code for the next attempt misbehaves.
#[derive(Serialize, Deserialize)]
struct BadDelay<const PANICS: bool>;

impl<const PANICS: bool> Perform for BadDelay<PANICS> {
    const KIND: &'static str = if PANICS {
        "panicking delay"
    } else {
        "endless delay"
    };
    type Context = ();
    type Output = ();
    fn perform(&self, _: &Run<'_, ()>) -> anyhow::Result<()> {
        bail!("not this time")
    }
    fn retry_delay(_attempt: i32) -> Duration {
        assert!(!PANICS, "no delay");
        Duration::MAX
    }
}

#[test]
fn a_delay_that_panics_or_never_ends_is_replaced() {
    let db = Db::new();
    let conn = &mut db.connect();
    let panics = BadDelay::<true>.enqueue(conn).unwrap().id;
    let endless = BadDelay::<false>.enqueue(conn).unwrap().id;
    let report = Worker::<Conn, ()>::new(db.manager(), ())
        .register::<BadDelay<true>>()
        .register::<BadDelay<false>>()
        .run_until_idle()
        .unwrap();
    assert_eq!(report.retried, 2);
    for id in [panics, endless] {
        let job = find(&db, id);
        assert_eq!(
            (job.status(), job.last_error()),
            (Status::Scheduled, Some("not this time"))
        );
    }
    db.assert_invariants();
}

/// Case 20: the job's row was deleted while it ran.
#[test]
fn a_completion_of_a_deleted_job_is_refused_and_nothing_else_happens() {
    let db = Db::new();
    let pool = db.pool(1);
    let id = step("delete me").enqueue(&mut db.connect()).unwrap().id;
    let started = start(worker(&db, move |name, run| {
        use diesel::connection::SimpleConnection;
        if name == "delete me" {
            let id = run.job_id();
            pool.get()?
                .batch_execute(&format!("DELETE FROM jobs_processing WHERE job_id = {id}"))?;
            pool.get()?
                .batch_execute(&format!("DELETE FROM jobs WHERE id = {id}"))?;
        }
        Ok(json!(null))
    }));
    let next = super::stage::eventually_enqueued_after_gone(&db, id);
    super::stage::await_status(&db, next, Status::Completed);
    let report = started.stop();
    assert_eq!((report.completed, report.refused), (1, 1));
    db.assert_invariants();
}
