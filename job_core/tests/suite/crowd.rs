use super::support::{any, echo, register};
use super::{Conn, Db, only};
use diesel::connection::SimpleConnection;
use job_core::{ClaimRequest, Fault, Job, JobError, Status};
use job_db::{Database, DbConnection};
use std::sync::{Barrier, Mutex};
use std::thread;

/// Two workers of eight threads claim until nothing is left.
fn claim_from_all_sides(db: &Db, level: &str) -> Vec<i64> {
    let claims = Mutex::new(Vec::new());
    let start = Barrier::new(16);
    let workers = [register(&mut db.connect()), register(&mut db.connect())];
    thread::scope(|scope| {
        for thread in 0..16 {
            let (worker, claims, start) = (&workers[thread % 2], &claims, &start);
            scope.spawn(move || {
                let conn = &mut db.connect();
                conn.batch_execute(level).unwrap();
                start.wait();
                loop {
                    match Job::find_new_job(conn, worker) {
                        Ok(Some(job)) => {
                            claims.lock().unwrap().push(job.id());
                            job.complete(conn, &job.id()).unwrap();
                        }
                        Ok(None) => break,
                        Err(error) => panic!("{level}: {error}"),
                    }
                }
            });
        }
    });
    claims.into_inner().unwrap()
}

#[test]
fn case_01_200_jobs_are_claimed_by_2_workers_of_8_threads_once_each_at_every_isolation_level() {
    for level in only::ISOLATION_LEVELS {
        let db = Db::new();
        let ids = Job::enqueue_all(&mut db.connect(), (0..200).map(|n| echo(&n.to_string()))).unwrap();
        let mut claims = claim_from_all_sides(&db, level);
        claims.sort_unstable();
        assert_eq!(claims, ids, "{level}");
        assert_eq!(Job::counts(&mut db.connect()).unwrap().of(Status::Completed), 200);
        db.assert_invariants();
    }
}

#[test]
fn batches_from_many_threads_are_claimed_once_each() {
    let db = Db::new();
    let ids = Job::enqueue_all(&mut db.connect(), (0..2_000).map(|_| any())).unwrap();
    let worker = register(&mut db.connect());
    let request = ClaimRequest {
        worker: worker.id,
        queue: "default",
        priority: 0,
        after: 0,
        kinds: &worker.kinds,
        limit: 50,
    };
    let claims = Mutex::new(Vec::new());
    let contended = Mutex::new(0);
    thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                let conn: &mut Conn = &mut db.connect();
                loop {
                    match job_core::claim(conn, &request) {
                        Ok(jobs) if jobs.is_empty() => break,
                        Ok(jobs) => claims.lock().unwrap().extend(jobs.iter().map(|job| job.id())),
                        Err(JobError::Database(error)) => {
                            assert_eq!(
                                <Conn as DbConnection>::Db::fault(&error),
                                Fault::Contended,
                                "{error}"
                            );
                            *contended.lock().unwrap() += 1;
                        }
                        Err(error) => panic!("{error}"),
                    }
                }
            });
        }
    });
    let mut claims = claims.into_inner().unwrap();
    claims.sort_unstable();
    assert_eq!(claims, ids);
    assert_eq!(
        contended.into_inner().unwrap(),
        0,
        "claims stood in each other's way"
    );
    db.assert_invariants();
}
