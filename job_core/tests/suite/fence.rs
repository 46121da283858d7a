use super::Db;
use super::support::{any, claim, claimed, kill, promote_all, register, status};
use job_core::{Job, JobError, Outcome, Status, Ticket, When, WorkerRow, complete_all, release_all};
use std::time::Duration;

#[track_caller]
fn lost<T: std::fmt::Debug>(result: Result<T, JobError>, id: i64) {
    assert!(
        matches!(result, Err(JobError::Lost(lost)) if lost == id),
        "{result:?}"
    );
}

/// Tries every way to record an outcome with a ticket that is not good any more.
#[track_caller]
fn all_lost(db: &Db, job: &job_core::ClaimedJob) {
    let conn = &mut db.connect();
    let before = Job::find(conn, job.id()).ok().map(|job| format!("{job:?}"));
    lost(job.complete(conn, &"late"), job.id());
    lost(job.fail(conn, "late"), job.id());
    lost(job.release(conn), job.id());
    for outcome in [
        Outcome::Completed(None),
        Outcome::Cancelled("late".into()),
        Outcome::FailedForGood("late".into()),
        Outcome::Snoozed(When::In(Duration::ZERO)),
    ] {
        lost(job.ticket.record(conn, &outcome), job.id());
    }
    let completions = [(job.ticket.clone(), None)];
    assert_eq!(
        complete_all(conn, job.ticket.worker, &completions).unwrap(),
        [0_i64; 0]
    );
    assert_eq!(release_all(conn, std::slice::from_ref(&job.ticket)).unwrap(), 0);
    let after = Job::find(conn, job.id()).ok().map(|job| format!("{job:?}"));
    assert_eq!(before, after);
    db.assert_invariants();
}

#[test]
fn invariant_4_what_was_rescued_cannot_be_recorded_by_the_one_who_lost_it() {
    let db = Db::new();
    let conn = &mut db.connect();
    let worker = register(conn);
    let job = claimed(conn, &worker, any().unique("key"));
    assert_eq!(kill(conn, &worker), [job.id()]);
    all_lost(&db, &job);
    assert_eq!(status(conn, job.id()), Status::Scheduled);
}

#[test]
fn case_12_the_completion_of_the_slow_worker_is_refused_and_that_of_the_other_is_taken() {
    let db = Db::new();
    let conn = &mut db.connect();
    let slow = register(conn);
    let first = claimed(conn, &slow, any());
    kill(conn, &slow);
    promote_all(&db, conn);
    let other = register(conn);
    let second = claim(conn, &other);
    assert_eq!((second.id(), second.ticket.attempts), (first.id(), 2));
    all_lost(&db, &first);
    second.complete(conn, &"second").unwrap();
    all_lost(&db, &first);
    let job = Job::find(conn, first.id()).unwrap();
    assert_eq!(job.output::<String>().unwrap(), "second");
    assert_eq!(job.worker(), Some(other.id));
    db.assert_invariants();
}

#[test]
fn invariant_4_the_attempt_is_part_of_the_fence_for_the_same_worker() {
    let db = Db::new();
    let conn = &mut db.connect();
    let worker = register(conn);
    let first = claimed(conn, &worker, any());
    first.release(conn).unwrap();
    let second = claim(conn, &worker);
    assert_eq!(second.id(), first.id());
    all_lost(&db, &first);
    second.complete(conn, &()).unwrap();
    db.assert_invariants();
}

#[test]
fn invariant_4_a_ticket_that_somebody_made_up_records_nothing() {
    let db = Db::new();
    let conn = &mut db.connect();
    let worker = register(conn);
    let job = claimed(conn, &worker, any());
    for ticket in [
        Ticket {
            worker: worker.id ^ 1,
            ..job.ticket.clone()
        },
        Ticket {
            attempts: 2,
            ..job.ticket.clone()
        },
        Ticket {
            attempts: 0,
            ..job.ticket.clone()
        },
    ] {
        let forged = job_core::ClaimedJob {
            ticket,
            ..job.clone()
        };
        all_lost(&db, &forged);
    }
    assert_eq!(status(conn, job.id()), Status::Processing);
    job.complete(conn, &()).unwrap();
    db.assert_invariants();
}

#[test]
fn an_outcome_is_recorded_once() {
    let db = Db::new();
    let conn = &mut db.connect();
    let worker = register(conn);
    for outcome in 0..3 {
        let job = claimed(conn, &worker, any().max_attempts(1));
        match outcome {
            0 => job.fail(conn, "once").map(drop).unwrap(),
            1 => job
                .ticket
                .record(conn, &Outcome::Cancelled("once".into()))
                .map(drop)
                .unwrap(),
            _ => Job::cancel(conn, job.id(), "once").unwrap(),
        }
        lost(job.complete(conn, &()), job.id());
        lost(job.fail(conn, "twice"), job.id());
        lost(job.release(conn), job.id());
        let job = Job::find(conn, job.id()).unwrap();
        assert_eq!(job.last_error(), Some("once"));
    }
    db.assert_invariants();
}

#[test]
fn case_20_a_job_that_was_deleted_while_it_ran_is_lost_and_nothing_worse() {
    let db = Db::new();
    let conn = &mut db.connect();
    let worker = register(conn);
    let job = claimed(conn, &worker, any());
    let kept = claimed(conn, &worker, any());
    for table in ["jobs WHERE id", "jobs_processing WHERE job_id"] {
        db.execute(&format!("DELETE FROM {table} = {}", job.id()));
    }
    all_lost(&db, &job);
    let completions = [(job.ticket.clone(), None), (kept.ticket.clone(), None)];
    assert_eq!(complete_all(conn, worker.id, &completions).unwrap(), [kept.id()]);
    db.assert_invariants();
}

#[test]
fn case_13_a_restarted_worker_is_another_one() {
    let db = Db::new();
    let conn = &mut db.connect();
    let former = register(conn);
    let job = claimed(conn, &former, any());
    let restarted = register(conn);
    assert_ne!(former.id, restarted.id);
    assert_eq!((&former.host, former.pid), (&restarted.host, restarted.pid));
    assert_eq!(kill(conn, &former), [job.id()]);
    assert!(WorkerRow::beat(conn, restarted.id).unwrap());
    assert!(!WorkerRow::beat(conn, former.id).unwrap());
    db.assert_invariants();
}

#[test]
fn case_10_no_time_is_part_of_the_fence() {
    let db = Db::new();
    let conn = &mut db.connect();
    let worker = register(conn);
    for _ in 0..2 {
        let job = claimed(conn, &worker, any());
        // As if the database had cut the microseconds.
        let cut = chrono::DurationRound::duration_trunc(job.ticket.started_at, chrono::TimeDelta::seconds(1));
        let ticket = Ticket {
            started_at: cut.unwrap(),
            ..job.ticket.clone()
        };
        assert_eq!(
            ticket.record(conn, &Outcome::Completed(None)).unwrap(),
            Status::Completed
        );
    }
    db.assert_invariants();
}
