use super::Db;
use super::support::{any, claimed, kill, promote_all, register};
use job_core::{ClaimedJob, Job, JobError, Outcome, Status, Ticket, discard_all};

fn tickets(jobs: &[ClaimedJob]) -> Vec<Ticket> {
    jobs.iter().map(|job| job.ticket.clone()).collect()
}

/// What there is of jobs anywhere.
fn rows(db: &Db) -> i64 {
    let tables = [
        "jobs",
        "jobs_processing",
        "jobs_finished",
        "job_failures",
        "unique_keys",
    ];
    tables
        .iter()
        .map(|table| db.count(&format!("SELECT count(*) FROM {table}")))
        .sum()
}

#[test]
fn many_that_completed_are_discarded_with_all_that_belongs_to_them() {
    let db = Db::new();
    let conn = &mut db.connect();
    let worker = register(conn);
    assert_eq!(discard_all(conn, worker.id, &[]).unwrap(), [0_i64; 0]);
    // One that failed before and holds a key, among others in their first attempt.
    let failing = claimed(conn, &worker, any().unique("key"));
    failing.fail(conn, "not yet").unwrap();
    promote_all(&db, conn);
    let again = super::support::claim(conn, &worker);
    let mut jobs: Vec<ClaimedJob> = (0..4).map(|_| claimed(conn, &worker, any())).collect();
    jobs.push(again);
    let kept = claimed(conn, &worker, any());
    let mut gone = discard_all(conn, worker.id, &tickets(&jobs)).unwrap();
    gone.sort_unstable();
    let mut ids: Vec<i64> = jobs.iter().map(ClaimedJob::id).collect();
    ids.sort_unstable();
    assert_eq!(gone, ids);
    for id in ids {
        assert!(matches!(Job::find(conn, id), Err(JobError::NotFound(_))));
    }
    kept.complete(conn, &()).unwrap();
    assert_eq!(Job::find(conn, kept.id()).unwrap().status(), Status::Completed);
    assert_eq!(rows(&db), 2, "the one that was kept, and its end");
    // The key is free.
    assert_ne!(any().unique("key").enqueue(conn).unwrap().id, failing.id());
    db.assert_invariants();
}

#[test]
fn one_outcome_discards_as_well() {
    let db = Db::new();
    let conn = &mut db.connect();
    let worker = register(conn);
    let job = claimed(conn, &worker, any().unique("key"));
    assert_eq!(
        job.ticket.record(conn, &Outcome::Discarded).unwrap(),
        Status::Completed
    );
    assert_eq!(rows(&db), 0);
    db.assert_invariants();
}

#[test]
fn who_lost_a_job_cannot_discard_it() {
    let db = Db::new();
    let conn = &mut db.connect();
    let worker = register(conn);
    let lost = claimed(conn, &worker, any().unique("key"));
    assert_eq!(kill(conn, &worker), [lost.id()]);
    let heir = register(conn);
    promote_all(&db, conn);
    let theirs = super::support::claim(conn, &heir);
    assert_eq!(theirs.id(), lost.id());
    let late = std::slice::from_ref(&lost.ticket);
    assert_eq!(discard_all(conn, worker.id, late).unwrap(), [0_i64; 0]);
    assert!(matches!(
        lost.ticket.record(conn, &Outcome::Discarded),
        Err(JobError::Lost(_))
    ));
    assert_eq!(Job::find(conn, lost.id()).unwrap().status(), Status::Processing);
    theirs.complete(conn, &()).unwrap();
    db.assert_invariants();
}

#[test]
fn a_discard_whose_answer_was_lost_is_recognised() {
    let db = Db::new();
    let conn = &mut db.connect();
    let worker = register(conn);
    let job = claimed(conn, &worker, any());
    let ticket = std::slice::from_ref(&job.ticket);
    assert_eq!(discard_all(conn, worker.id, ticket).unwrap(), [job.id()]);
    assert_eq!(discard_all(conn, worker.id, ticket).unwrap(), [job.id()]);
    db.assert_invariants();
}
