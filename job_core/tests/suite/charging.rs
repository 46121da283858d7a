use super::Db;
use super::support::{any, claim, claimed, kill, promote_all, register};
use job_core::{ClaimedJob, Job, Outcome, Status, When, limits};
use std::time::Duration;

const SNOOZED: Outcome = Outcome::Snoozed(When::In(Duration::ZERO));

fn failed() -> Outcome {
    Outcome::Failed {
        error: "again".into(),
        delay: Duration::ZERO,
    }
}

/// Gives every attempt the same end until the job has ended, and counts the attempts.
#[track_caller]
fn attempts_until_the_end(end: impl Fn(&mut super::Conn, &ClaimedJob)) -> (i32, Job) {
    let db = Db::new();
    let conn = &mut db.connect();
    let id = any().max_attempts(3).enqueue(conn).unwrap().id;
    for attempt in 1..100 {
        let worker = register(conn);
        let job = claim(conn, &worker);
        end(conn, &job);
        db.assert_invariants();
        let job = Job::find(conn, id).unwrap();
        if job.status().is_finished() {
            return (attempt, job);
        }
        promote_all(&db, conn);
    }
    panic!("it never ends");
}

#[test]
fn invariant_5_and_case_25_every_failing_outcome_ends_within_max_attempts() {
    let (attempts, job) = attempts_until_the_end(|conn, job| {
        job.fail(conn, "no").unwrap();
    });
    assert_eq!((attempts, job.status(), job.attempts()), (3, Status::Failed, 3));
    let (attempts, job) = attempts_until_the_end(|conn, job| {
        job.ticket.record(conn, &failed()).unwrap();
    });
    assert_eq!((attempts, job.status(), job.attempts()), (3, Status::Failed, 3));
    let (attempts, job) = attempts_until_the_end(|conn, job| {
        job.ticket
            .record(conn, &Outcome::FailedForGood("no".into()))
            .unwrap();
    });
    assert_eq!((attempts, job.status()), (1, Status::Failed));
}

#[test]
fn case_14_a_job_that_kills_its_worker_ends_as_failed() {
    let (attempts, job) = attempts_until_the_end(|conn, job| {
        job_core::WorkerRow::unregister(conn, job.ticket.worker).unwrap();
        assert_eq!(job_core::housekeeping::rescue(conn, 10).unwrap(), [job.id()]);
    });
    assert_eq!((attempts, job.status(), job.attempts()), (3, Status::Failed, 3));
    assert!(job.last_error().unwrap().contains("died"), "{job:?}");
}

#[test]
fn case_15_a_job_that_is_handed_back_unstarted_is_not_charged() {
    let db = Db::new();
    let conn = &mut db.connect();
    let worker = register(conn);
    let id = any().max_attempts(1).enqueue(conn).unwrap().id;
    for claims in 1..=5 {
        let job = claim(conn, &worker);
        assert_eq!((job.attempt(), job.ticket.attempts), (1, claims));
        assert_eq!(job_core::release_all(conn, &[job.ticket]).unwrap(), 1);
        let job = Job::find(conn, id).unwrap();
        assert_eq!((job.status(), job.attempts()), (Status::New, 0));
        db.assert_invariants();
    }
    let job = claim(conn, &worker);
    assert_eq!(job.complete(conn, &()).unwrap(), Status::Completed);
    assert_eq!(Job::find(conn, id).unwrap().attempts(), 1);
    db.assert_invariants();
}

#[test]
fn invariant_5_a_claim_and_a_rescue_are_charged() {
    let db = Db::new();
    let conn = &mut db.connect();
    let worker = register(conn);
    let job = claimed(conn, &worker, any());
    assert_eq!(Job::find(conn, job.id()).unwrap().attempts(), 1);
    kill(conn, &worker);
    let rescued = Job::find(conn, job.id()).unwrap();
    assert_eq!((rescued.status(), rescued.attempts()), (Status::Scheduled, 1));
    assert_eq!(rescued.failures(conn).unwrap().len(), 1);
    db.assert_invariants();
}

#[test]
fn invariant_5_a_snooze_is_not_charged_until_there_were_too_many() {
    let db = Db::new();
    let conn = &mut db.connect();
    let worker = register(conn);
    let job = claimed(conn, &worker, any().max_attempts(2));
    assert_eq!(job.ticket.record(conn, &SNOOZED).unwrap(), Status::Scheduled);
    let snoozed = Job::find(conn, job.id()).unwrap();
    assert_eq!((snoozed.status(), snoozed.attempts()), (Status::Scheduled, 0));
    assert_eq!(snoozed.failures(conn).unwrap(), []);
    // Nearly all that it may have.
    let max = limits::MAX_UNCHARGED;
    db.execute(&format!(
        "UPDATE jobs_scheduled SET attempts = {}, uncharged = {}",
        max - 1,
        max - 1
    ));
    promote_all(&db, conn);
    let job = claim(conn, &worker);
    assert_eq!(job.ticket.record(conn, &SNOOZED).unwrap(), Status::Scheduled);
    assert_eq!(Job::find(conn, job.id()).unwrap().attempts(), 0);
    for (attempt, status) in [(1, Status::Scheduled), (2, Status::Failed)] {
        promote_all(&db, conn);
        let job = claim(conn, &worker);
        assert_eq!(job.attempt(), attempt);
        assert_eq!(job.ticket.record(conn, &SNOOZED).unwrap(), status);
        db.assert_invariants();
    }
    let job = Job::find(conn, job.id()).unwrap();
    assert_eq!(job.attempts(), 2);
    assert!(job.last_error().unwrap().contains("snoozed too often"), "{job:?}");
}

#[test]
fn a_failure_after_uncharged_attempts_still_has_its_whole_budget() {
    let db = Db::new();
    let conn = &mut db.connect();
    let worker = register(conn);
    let job = claimed(conn, &worker, any().max_attempts(2));
    job.release(conn).unwrap();
    let job = claim(conn, &worker);
    job.ticket.record(conn, &SNOOZED).unwrap();
    for status in [Status::Scheduled, Status::Failed] {
        promote_all(&db, conn);
        let job = claim(conn, &worker);
        assert_eq!(job.ticket.record(conn, &failed()).unwrap(), status);
    }
    // The numbers of the failed attempts are those among all claims.
    let failures = Job::find(conn, job.id()).unwrap().failures(conn).unwrap();
    assert_eq!(
        failures.iter().map(|failure| failure.attempt).collect::<Vec<_>>(),
        [3, 4]
    );
    db.assert_invariants();
}

#[test]
fn case_23_a_job_near_the_greatest_number_of_attempts_is_scheduled_or_ends() {
    for (attempts, uncharged) in [
        (30, 0),
        (62, 0),
        (309, 0),
        (998, 0),
        (i32::MAX - 1, i32::MAX - 1 - 500),
    ] {
        let db = Db::new();
        let conn = &mut db.connect();
        let worker = register(conn);
        any().max_attempts(1000).enqueue(conn).unwrap();
        db.execute(&format!(
            "UPDATE jobs_new SET attempts = {attempts}, uncharged = {uncharged}"
        ));
        let job = claim(conn, &worker);
        assert_eq!(job.fail(conn, "no").unwrap(), Status::Scheduled, "{attempts}");
        let run_at = Job::find(conn, job.id()).unwrap().run_at().unwrap();
        let wait = run_at - job_core::now(conn).unwrap();
        assert!((0..=7).contains(&wait.num_hours()), "{wait}");
        db.assert_invariants();
    }
}

#[test]
fn case_24_the_delay_is_counted_from_the_failure_not_from_the_enqueueing() {
    let db = Db::new();
    let conn = &mut db.connect();
    let worker = register(conn);
    let id = any().enqueue(conn).unwrap().id;
    db.execute(&format!("UPDATE jobs SET created_at = {}", super::only::PAST));
    let job = claim(conn, &worker);
    let before = job_core::now(conn).unwrap();
    job.fail(conn, "no").unwrap();
    assert!(Job::find(conn, id).unwrap().run_at().unwrap() > before);
    assert_eq!(job_core::housekeeping::promote(conn, 10).unwrap(), 0);
    db.assert_invariants();
}
