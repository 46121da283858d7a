use super::Db;
use super::support::{any, claim, claimed, one_in_each_status, register, status};
use job_core::{Job, JobError, Status};

type Verb = fn(&mut super::Conn, i64) -> Result<(), JobError>;

/// Tries the verb on a job in each status: done where it may be, refused with the status where not.
#[track_caller]
fn in_each_status(name: &str, verb: Verb, allowed: &[Status]) -> (Db, [i64; 6]) {
    let db = Db::new();
    let conn = &mut db.connect();
    let ids = one_in_each_status(conn);
    for (id, status) in ids.into_iter().zip(Status::ALL) {
        assert_eq!(Job::find(conn, id).unwrap().status(), status);
        match verb(conn, id) {
            Ok(()) => assert!(allowed.contains(&status), "{name} {status}"),
            Err(JobError::WrongStatus {
                id: of,
                status: is,
                wish,
            }) => {
                assert!(!allowed.contains(&status), "{name} {status}");
                assert_eq!((of, is, wish), (id, status, name));
                assert_eq!(Job::find(conn, id).unwrap().status(), status);
            }
            Err(error) => panic!("{name} {status}: {error}"),
        }
        db.assert_invariants();
    }
    let unknown = verb(conn, i64::MAX);
    assert!(
        matches!(unknown, Err(JobError::NotFound(i64::MAX))),
        "{unknown:?}"
    );
    (db, ids)
}

#[test]
fn cancel_in_every_status() {
    use Status::{New, Processing, Scheduled};
    let (db, ids) = in_each_status(
        "cancelled",
        |conn, id| Job::cancel(conn, id, "why"),
        &[Scheduled, New, Processing],
    );
    let conn = &mut db.connect();
    for id in &ids[..3] {
        let job = Job::find(conn, *id).unwrap();
        assert_eq!((job.status(), job.last_error()), (Status::Cancelled, Some("why")));
        assert!(job.finished_at().is_some());
    }
}

#[test]
fn discard_in_every_status() {
    use Status::{Cancelled, Completed, Failed, New, Scheduled};
    let allowed = [Scheduled, New, Completed, Failed, Cancelled];
    let (db, ids) = in_each_status("discarded", Job::discard, &allowed);
    assert_eq!(db.bigints("SELECT id FROM jobs"), [ids[2]]);
    assert_eq!(db.count("SELECT count(*) FROM job_failures"), 0);
}

#[test]
fn retry_in_every_status() {
    use Status::{Cancelled, Completed, Failed};
    let (db, ids) = in_each_status("retried", Job::retry, &[Completed, Failed, Cancelled]);
    let conn = &mut db.connect();
    for id in &ids[3..] {
        let job = Job::find(conn, *id).unwrap();
        assert_eq!((job.status(), job.attempts()), (Status::New, 0));
        assert_eq!((job.finished_at(), job.started_at()), (None, None));
    }
}

#[test]
fn a_retried_job_has_all_its_attempts_before_it_and_keeps_its_history() {
    let db = Db::new();
    let conn = &mut db.connect();
    let worker = register(conn);
    let job = claimed(conn, &worker, any().max_attempts(1));
    assert_eq!(job.fail(conn, "first").unwrap(), Status::Failed);
    Job::retry(conn, job.id()).unwrap();
    let again = claim(conn, &worker);
    assert_eq!((again.attempt(), again.ticket.attempts), (1, 2));
    assert_eq!(again.fail(conn, "second").unwrap(), Status::Failed);
    let errors: Vec<String> = Job::find(conn, job.id())
        .unwrap()
        .failures(conn)
        .unwrap()
        .into_iter()
        .map(|failure| failure.error)
        .collect();
    assert_eq!(errors, ["first", "second"]);
    db.assert_invariants();
}

#[test]
fn a_cancelled_job_frees_its_key_and_a_retried_one_takes_it_again() {
    let db = Db::new();
    let conn = &mut db.connect();
    let first = any().unique("key").enqueue(conn).unwrap().id;
    Job::cancel(conn, first, "").unwrap();
    assert_eq!(
        Job::find(conn, first).unwrap().last_error(),
        Some("(an error without a message)")
    );
    Job::retry(conn, first).unwrap();
    assert_eq!(any().unique("key").enqueue(conn).unwrap().id, first);
    Job::discard(conn, first).unwrap();
    assert_ne!(any().unique("key").enqueue(conn).unwrap().id, first);
    db.assert_invariants();
}

#[test]
fn case_33_a_retry_whose_twin_is_waiting_is_refused_and_stays_as_it_is() {
    let db = Db::new();
    let conn = &mut db.connect();
    let worker = register(conn);
    let first = claimed(conn, &worker, any().unique("key").max_attempts(1));
    first.fail(conn, "no").unwrap();
    let twin = any().unique("key").enqueue(conn).unwrap();
    let error = Job::retry(conn, first.id()).unwrap_err();
    assert!(
        matches!(error, JobError::KeyTaken { id, holder } if id == first.id() && holder == twin.id),
        "{error}"
    );
    assert_eq!(status(conn, first.id()), Status::Failed);
    db.assert_invariants();
    claim(conn, &worker).complete(conn, &()).unwrap();
    Job::retry(conn, first.id()).unwrap();
    assert_eq!(status(conn, first.id()), Status::New);
    db.assert_invariants();
}

#[test]
fn a_processing_job_that_is_cancelled_takes_no_outcome() {
    let db = Db::new();
    let conn = &mut db.connect();
    let worker = register(conn);
    let job = claimed(conn, &worker, any().unique("key"));
    Job::cancel(conn, job.id(), "stop it").unwrap();
    let found = Job::find(conn, job.id()).unwrap();
    assert_eq!((found.attempts(), found.worker()), (1, Some(worker.id)));
    assert_eq!(found.started_at(), Some(job.ticket.started_at));
    assert!(matches!(job.complete(conn, &()), Err(JobError::Lost(_))));
    assert_ne!(any().unique("key").enqueue(conn).unwrap().id, job.id());
    db.assert_invariants();
}

#[test]
fn many_threads_that_cancel_claim_discard_and_retry_the_same_jobs_leave_each_in_one_table() {
    use job_core::Fault;
    use job_db::{Database, DbConnection};
    let db = Db::new();
    let ids = Job::enqueue_all(&mut db.connect(), (0..20).map(|n| any().unique(n.to_string()))).unwrap();
    let contended = std::sync::atomic::AtomicU32::new(0);
    std::thread::scope(|scope| {
        for thread in 0..6 {
            let (db, ids, contended) = (&db, &ids, &contended);
            scope.spawn(move || {
                let conn = &mut db.connect();
                let worker = register(conn);
                for round in 0..60 {
                    let id = ids[(round * 7 + thread) % ids.len()];
                    let result = match (round + thread) % 5 {
                        0 => Job::cancel(conn, id, "why"),
                        1 | 2 => Job::retry(conn, id),
                        3 if round % 30 == 3 => Job::discard(conn, id),
                        _ => Job::find_new_job(conn, &worker).and_then(|job| match job {
                            Some(job) => job.complete(conn, &()).map(drop),
                            None => Ok(()),
                        }),
                    };
                    if let Err(JobError::Database(error)) = result {
                        let fault = <super::Conn as DbConnection>::Db::fault(&error);
                        assert_eq!(fault, Fault::Contended, "{error}");
                        contended.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
                    }
                }
            });
        }
    });
    db.assert_invariants();
    assert_eq!(contended.into_inner(), 0, "the threads stood in each other's way");
}
