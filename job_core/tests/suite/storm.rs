use super::support::{any, echo, promote_all, register};
use super::{Conn, Db, only};
use diesel::Connection;
use diesel::connection::SimpleConnection;
use job_core::{ClaimRequest, EnqueueError, Fault, Job, JobError, NewJob, Outcome, Status, WorkerRow};
use job_core::{claim, complete_all, housekeeping, lanes, release_all};
use job_db::{Database, DbConnection};
use std::collections::BTreeMap;
use std::sync::Mutex;
use std::thread;
use std::time::Duration;

type Backend = <Conn as DbConnection>::Db;
type Surfaced = Mutex<BTreeMap<String, usize>>;

/// Counts an error that must be one of contention.
fn surfaced(errors: &Surfaced, verb: &str, error: &diesel::result::Error) {
    assert_eq!(Backend::fault(error), Fault::Contended, "{verb}: {error}");
    *errors
        .lock()
        .unwrap()
        .entry(format!("{verb}: {error}"))
        .or_default() += 1;
}

fn database(error: JobError) -> diesel::result::Error {
    match error {
        JobError::Database(error) => error,
        error => panic!("{error}"),
    }
}

/// An app: bulks and single jobs, with and without keys, in transactions at the level of its session.
fn enqueue(db: &Db, level: &str, thread: usize, errors: &Surfaced) {
    let connect = || {
        let mut conn = db.connect();
        conn.batch_execute(level).unwrap();
        conn
    };
    let conn = &mut connect();
    for round in 0..25 {
        let enqueued = conn.transaction(|conn| {
            let jobs = (0..20).map(|n| -> NewJob {
                match n % 5 {
                    0 => any().unique(format!("key {}", (round + n + thread) % 30)),
                    1 => any().run_in(Duration::from_micros(1)),
                    _ => echo("storm").into(),
                }
            });
            Job::enqueue_all(conn, jobs)?;
            any().enqueue(conn)?;
            any().unique(format!("key {}", round % 30)).enqueue(conn)?;
            Ok::<_, EnqueueError>(())
        });
        match enqueued {
            Ok(()) | Err(EnqueueError::Serialization | EnqueueError::KeyUnsettled) => {}
            Err(EnqueueError::Database(error)) => surfaced(errors, "enqueue", &error),
            Err(error) => panic!("{error}"),
        }
        // A deadlock on MySQL and MariaDB: this connection commits nothing any more.
        if job_db::is_broken(conn) {
            *conn = connect();
        }
    }
}

/// A worker that claims in batches and gives each job some end.
fn work(db: &Db, round: usize, errors: &Surfaced) {
    let conn = &mut db.connect();
    Backend::prepare_session(conn, Duration::from_secs(30)).unwrap();
    let worker = register(conn);
    for _ in 0..40 {
        for (queue, priority) in lanes(conn, &worker.queues).unwrap() {
            let request = ClaimRequest {
                worker: worker.id,
                queue: &queue,
                priority,
                after: 0,
                kinds: &worker.kinds,
                limit: 30,
            };
            let jobs = match claim(conn, &request) {
                Ok(jobs) => jobs,
                Err(error) => {
                    surfaced(errors, "claim", &database(error));
                    continue;
                }
            };
            let mut tickets: Vec<_> = jobs.into_iter().map(|job| job.ticket).collect();
            let back = tickets.split_off(tickets.len() - tickets.len() / 10);
            let failing = tickets.split_off(tickets.len() - tickets.len() / 10);
            let completions: Vec<_> = tickets.into_iter().map(|ticket| (ticket, None)).collect();
            if let Err(error) = complete_all(conn, worker.id, &completions) {
                surfaced(errors, "complete", &database(error));
            }
            if let Err(error) = release_all(conn, &back) {
                surfaced(errors, "release", &database(error));
            }
            for ticket in failing {
                let outcome = Outcome::Failed {
                    error: "storm".into(),
                    delay: Duration::ZERO,
                };
                match ticket.record(conn, &outcome) {
                    Ok(_) | Err(JobError::Lost(_)) => {}
                    Err(error) => surfaced(errors, "fail", &database(error)),
                }
            }
        }
    }
    if round.is_multiple_of(2) {
        // It dies with what it holds.
        WorkerRow::unregister(conn, worker.id).unwrap();
    }
}

/// A housekeeper who believes that everybody is dead.
fn keep_house(db: &Db, errors: &Surfaced) {
    let conn = &mut db.connect();
    Backend::prepare_session(conn, Duration::from_secs(30)).unwrap();
    for round in 0..40 {
        if let Err(error) = housekeeping::promote(conn, 50) {
            surfaced(errors, "promote", &database(error));
        }
        if round % 10 == 5 {
            for worker in WorkerRow::list(conn).unwrap() {
                housekeeping::declare_dead(conn, worker.id, Duration::ZERO).unwrap();
            }
        }
        if let Err(error) = housekeeping::rescue(conn, 50) {
            surfaced(errors, "rescue", &database(error));
        }
        for status in [Status::Completed, Status::Failed] {
            if let Err(error) = housekeeping::prune(conn, status, Duration::ZERO, 0, 20) {
                surfaced(errors, "prune", &database(error));
            }
        }
    }
}

#[test]
fn case_09_everybody_at_once_leaves_each_job_in_one_table_and_nobody_in_anothers_way() {
    for level in only::ISOLATION_LEVELS {
        let db = Db::new();
        let errors = Surfaced::default();
        thread::scope(|scope| {
            for thread in 0..3 {
                let (db, errors) = (&db, &errors);
                scope.spawn(move || enqueue(db, level, thread, errors));
                scope.spawn(move || work(db, thread, errors));
            }
            scope.spawn(|| keep_house(&db, &errors));
            scope.spawn(|| keep_house(&db, &errors));
        });
        db.assert_invariants();
        let errors = errors.into_inner().unwrap();
        // Serializable transactions of an app's own make others fail, and must be run again themselves. Else nothing comes
        // to light.
        if !level.to_lowercase().contains("serializable") {
            assert!(errors.is_empty(), "{level}: {errors:?}");
        }
        // Nothing is stuck: all can be performed to its end.
        let conn = &mut db.connect();
        db.execute("DELETE FROM workers");
        while !housekeeping::rescue(conn, 1_000).unwrap().is_empty() {}
        promote_all(&db, conn);
        let worker = register(conn);
        while let Some(job) = Job::find_new_job(conn, &worker).unwrap() {
            job.complete(conn, &()).unwrap();
        }
        assert_eq!(Job::counts(conn).unwrap().unfinished(), 0);
        db.assert_invariants();
    }
}
