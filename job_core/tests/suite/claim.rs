use super::support::{Mail, any, claim, claimed, echo, register, status, strings};
use super::{Db, only};
use diesel::Connection;
use job_core::{ClaimRequest, Job, JobError, Perform, Status, WorkerRow, claim_first, lanes};
use std::time::Duration;

fn request<'a>(worker: &'a WorkerRow, queue: &'a str, after: i64, limit: i64) -> ClaimRequest<'a> {
    ClaimRequest {
        worker: worker.id,
        queue,
        priority: 0,
        after,
        kinds: &worker.kinds,
        limit,
    }
}

#[test]
fn case_02_a_worker_gets_only_what_is_due_in_its_queues() {
    let db = Db::new();
    let conn = &mut db.connect();
    any()
        .queue("a")
        .run_in(Duration::from_secs(60))
        .enqueue(conn)
        .unwrap();
    any().queue("b").enqueue(conn).unwrap();
    let worker = WorkerRow::register(conn, &strings(&["a"]), &strings(&["echo"])).unwrap();
    assert!(Job::find_new_job(conn, &worker).unwrap().is_none());
    let nobody = WorkerRow::register(conn, &[], &strings(&["echo"])).unwrap();
    assert!(Job::find_new_job(conn, &nobody).unwrap().is_none());
    let due = any().queue("a").enqueue(conn).unwrap();
    assert_eq!(claim(conn, &worker).id(), due.id);
    db.assert_invariants();
}

#[test]
fn case_03_a_job_without_attempts_left_does_not_stop_the_queue() {
    let db = Db::new();
    let conn = &mut db.connect();
    let worker = register(conn);
    let bad = any().max_attempts(2).enqueue(conn).unwrap().id;
    let good = any().enqueue(conn).unwrap().id;
    db.execute(&format!("UPDATE jobs_new SET attempts = 2 WHERE job_id = {bad}"));
    let first = claim(conn, &worker);
    let second = claim(conn, &worker);
    assert_eq!((first.id(), second.id()), (bad, good));
    assert_eq!(first.fail(conn, "again").unwrap(), Status::Failed);
    assert_eq!(second.complete(conn, &()).unwrap(), Status::Completed);
    db.assert_invariants();
}

#[test]
fn case_04_only_the_kinds_of_the_worker_are_claimed_and_others_do_not_stand_in_the_way() {
    let db = Db::new();
    let conn = &mut db.connect();
    let mails = (0..500).map(|to| Mail { to }.job().queue("default").priority(0));
    let first_mail = Job::enqueue_all(conn, mails).unwrap()[0];
    let job = any().enqueue(conn).unwrap();
    let worker = WorkerRow::register(conn, &strings(&["default"]), &strings(&["echo"])).unwrap();
    assert_eq!(claim(conn, &worker).id(), job.id);
    assert!(Job::find_new_job(conn, &worker).unwrap().is_none());
    assert_eq!(status(conn, first_mail), Status::New);
    let without = WorkerRow::register(conn, &strings(&["default"]), &[]).unwrap();
    assert!(Job::find_new_job(conn, &without).unwrap().is_none());
    db.assert_invariants();
}

#[test]
fn case_07_ids_above_two_to_the_31_and_near_two_to_the_53_live_a_whole_life() {
    for first in [(1_i64 << 31) - 2, (1 << 32) - 2, (1 << 53) - 5, 1 << 60] {
        let db = Db::new();
        only::set_next_id(&db, first);
        let conn = &mut db.connect();
        let worker = register(conn);
        let ids = Job::enqueue_all(conn, (0..5).map(|_| any())).unwrap();
        assert_eq!(ids, (first..first + 5).collect::<Vec<_>>());
        let keyed = any()
            .unique("key")
            .run_in(Duration::from_secs(60))
            .enqueue(conn)
            .unwrap();
        super::support::promote_all(&db, conn);
        let jobs = job_core::claim(conn, &request(&worker, "default", first - 1, 100)).unwrap();
        assert_eq!(
            jobs.iter().map(|job| job.id()).collect::<Vec<_>>(),
            (first..first + 6).collect::<Vec<_>>()
        );
        let completions: Vec<_> = jobs[..4].iter().map(|job| (job.ticket.clone(), None)).collect();
        assert_eq!(
            job_core::complete_all(conn, worker.id, &completions)
                .unwrap()
                .len(),
            4
        );
        jobs[4].release(conn).unwrap();
        jobs[5].fail(conn, "no").unwrap();
        assert_eq!(status(conn, keyed.id), Status::Scheduled);
        Job::cancel(conn, keyed.id, "enough").unwrap();
        Job::discard(conn, ids[0]).unwrap();
        let pruned = job_core::housekeeping::prune(conn, Status::Cancelled, Duration::ZERO, 0, 10).unwrap();
        assert!(pruned.removed <= 1);
        assert_eq!(Job::filter().before(ids[2]).load(conn).unwrap().len(), 1);
        db.assert_invariants();
    }
}

#[test]
fn jobs_go_by_queue_then_priority_then_id() {
    let db = Db::new();
    let conn = &mut db.connect();
    let ids = Job::enqueue_all(
        conn,
        [
            any().queue("second").priority(-100),
            any().queue("first").priority(1),
            any().queue("first"),
            any().queue("first").priority(-1),
            any().queue("first"),
        ],
    )
    .unwrap();
    let queues = strings(&["first", "second", "empty"]);
    let first = |priority| ("first".to_owned(), priority);
    assert_eq!(
        lanes(conn, &queues).unwrap(),
        [first(-1), first(0), first(1), ("second".to_owned(), -100)]
    );
    let worker = WorkerRow::register(conn, &queues, &strings(&["echo"])).unwrap();
    let order: Vec<i64> = std::iter::from_fn(|| Job::find_new_job(conn, &worker).unwrap())
        .map(|job| job.id())
        .collect();
    assert_eq!(order, [ids[3], ids[2], ids[4], ids[1], ids[0]]);
    db.assert_invariants();
}

#[test]
fn the_cursor_hides_what_is_behind_it_and_the_limit_holds() {
    let db = Db::new();
    let conn = &mut db.connect();
    let worker = register(conn);
    let ids = Job::enqueue_all(conn, (0..10).map(|_| any())).unwrap();
    let mut claimed = |after, limit| -> Vec<i64> {
        let jobs = job_core::claim(conn, &request(&worker, "default", after, limit)).unwrap();
        jobs.iter().map(|job| job.id()).collect()
    };
    assert_eq!(claimed(ids[4], 2), ids[5..7]);
    assert_eq!(claimed(0, 3), ids[0..3]);
    assert_eq!(claimed(ids[9], 3), [0_i64; 0]);
    assert_eq!(claimed(0, 0), [0_i64; 0]);
    assert_eq!(claimed(0, 100), [&ids[3..5], &ids[7..]].concat());
    db.assert_invariants();
}

#[test]
fn a_worker_without_a_row_gets_nothing() {
    let db = Db::new();
    let conn = &mut db.connect();
    let worker = register(conn);
    let job = any().enqueue(conn).unwrap();
    WorkerRow::unregister(conn, worker.id).unwrap();
    assert!(Job::find_new_job(conn, &worker).unwrap().is_none());
    assert!(
        job_core::claim(conn, &request(&worker, "default", 0, 10))
            .unwrap()
            .is_empty()
    );
    assert_eq!(status(conn, job.id), Status::New);
    db.assert_invariants();
}

#[test]
fn a_claimed_job_has_all_that_is_needed_to_perform_it() {
    let db = Db::new();
    let conn = &mut db.connect();
    let worker = register(conn);
    let job = claimed(
        conn,
        &worker,
        echo("\"quoted\" \\ 🦀 é").job().unique("key").max_attempts(4),
    );
    assert_eq!(job.kind, "echo");
    assert_eq!(
        job.args::<super::support::Echo>().unwrap().text,
        "\"quoted\" \\ 🦀 é"
    );
    assert_eq!(
        (job.attempt(), job.ticket.attempts, job.ticket.uncharged),
        (1, 1, 0)
    );
    assert_eq!(
        (job.ticket.worker, job.ticket.max_attempts, job.ticket.unique),
        (worker.id, 4, true)
    );
    let found = Job::find(conn, job.id()).unwrap();
    assert_eq!(found.started_at(), Some(job.ticket.started_at));
    assert_eq!((found.worker(), found.attempts()), (Some(worker.id), 1));
    db.assert_invariants();
}

#[test]
fn case_28_arguments_that_do_not_decode_do_not_stop_the_others() {
    let db = Db::new();
    let conn = &mut db.connect();
    let worker = register(conn);
    let ids = Job::enqueue_all(conn, (0..3).map(|_| any())).unwrap();
    db.execute(&format!(
        "UPDATE jobs SET args = '[\"old\"]' WHERE id = {}",
        ids[1]
    ));
    let jobs = job_core::claim(conn, &request(&worker, "default", 0, 10)).unwrap();
    let results: Vec<_> = jobs.iter().map(|job| job.args::<Mail>()).collect();
    assert!(matches!(results[1], Err(JobError::Decode { id, .. }) if id == ids[1]));
    let reason = results[1].as_ref().unwrap_err().to_string();
    assert_eq!(jobs[1].fail(conn, &reason).unwrap(), Status::Scheduled);
    jobs[0].complete(conn, &()).unwrap();
    jobs[2].complete(conn, &()).unwrap();
    let failures = Job::find(conn, ids[1]).unwrap().failures(conn).unwrap();
    assert!(failures[0].error.contains("does not decode"), "{failures:?}");
    db.assert_invariants();
}

#[test]
fn the_first_lane_is_claimed_in_one_step_where_the_database_can() {
    let db = Db::new();
    let conn = &mut db.connect();
    let worker = register(conn);
    let mut first = |limit: i64, kinds: &[&str]| -> Result<Vec<i64>, JobError> {
        let jobs = claim_first(conn, worker.id, &worker.queues, &strings(kinds), limit)?;
        Ok(jobs.iter().map(|job| job.id()).collect())
    };
    assert_eq!(first(10, &["echo"]).unwrap(), [0_i64; 0]);
    let conn = &mut db.connect();
    let mut enqueue = |queue: &str, priority| any().queue(queue).priority(priority).enqueue(conn).unwrap().id;
    let [post, low, high, next, _elsewhere] = [
        enqueue("post", -9),
        enqueue("default", 5),
        enqueue("default", -5),
        enqueue("default", -5),
        enqueue("elsewhere", -9),
    ];
    // Its lane, up to the limit; and nothing where that has none of these kinds.
    assert_eq!(first(10, &["mail"]).unwrap(), [0_i64; 0]);
    assert_eq!(first(0, &["echo"]).unwrap(), [0_i64; 0]);
    if first(1, &["echo"]).unwrap() == [high] {
        for rest in [vec![next], vec![low], vec![post], vec![]] {
            assert_eq!(first(10, &["echo"]).unwrap(), rest);
        }
        db.execute(&format!("DELETE FROM workers WHERE id = {}", worker.id));
        any().enqueue(conn).unwrap();
        assert_eq!(
            first(10, &["echo"]).unwrap(),
            [0_i64; 0],
            "a worker without a row"
        );
        assert_eq!(job_core::housekeeping::rescue(conn, 10).unwrap().len(), 4);
    } else {
        assert_eq!(Job::counts(conn).unwrap().of(Status::New), 5, "it claims nothing");
    }
    let refused = conn.transaction(|conn| claim_first(conn, 1, &worker.queues, &worker.kinds, 1));
    assert!(matches!(refused, Err(JobError::InTransaction)));
    db.assert_invariants();
}
