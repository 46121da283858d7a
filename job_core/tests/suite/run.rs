use super::support::{any, claim, claimed, promote_all, register};
use super::{Conn, Db};
use diesel::connection::SimpleConnection;
use job_core::{ClaimedJob, Connections, Job, JobError, Outcome, Run, Status, complete_all};
use std::any::Any;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// A pool of one.
struct One(Mutex<Conn>);

impl Connections for One {
    fn with(&self, work: &mut dyn FnMut(&mut dyn Any)) -> anyhow::Result<()> {
        work(&mut *self.0.lock().unwrap());
        Ok(())
    }
}

struct Nobody;

impl Connections for Nobody {
    fn with(&self, _: &mut dyn FnMut(&mut dyn Any)) -> anyhow::Result<()> {
        anyhow::bail!("the pool is empty")
    }
}

static RUNNING: AtomicBool = AtomicBool::new(false);

fn run<'a>(job: &'a ClaimedJob, pool: &'a dyn Connections) -> Run<'a, ()> {
    Run::new(&(), &job.ticket, pool, &RUNNING)
}

/// The job's own write.
fn write(conn: &mut Conn) -> anyhow::Result<i64> {
    conn.batch_execute("INSERT INTO locks (name) VALUES ('effect')")?;
    Ok(42)
}

fn effects(db: &Db) -> i64 {
    db.count("SELECT count(*) FROM locks WHERE name = 'effect'")
}

#[test]
fn invariant_6_a_job_is_completed_in_one_transaction_with_its_own_writes() {
    let db = Db::new();
    let conn = &mut db.connect();
    let pool = One(Mutex::new(db.connect()));
    let worker = register(conn);
    let job = claimed(conn, &worker, any().unique("key"));
    let run = run(&job, &pool);
    assert!(!run.is_recorded());
    assert_eq!(run.transaction(write).unwrap(), 42);
    assert!(run.is_recorded());
    let found = Job::find(conn, job.id()).unwrap();
    assert_eq!(
        (found.status(), found.output::<i64>().unwrap()),
        (Status::Completed, 42)
    );
    assert_eq!(effects(&db), 1);
    assert_eq!(db.count("SELECT count(*) FROM unique_keys"), 0);
    // What the worker then reports changes nothing.
    assert_eq!(
        job.ticket.record(conn, &Outcome::Recorded).unwrap(),
        Status::Completed
    );
    assert_eq!(
        complete_all(conn, worker.id, &[(job.ticket.clone(), None)]).unwrap(),
        [job.id()]
    );
    db.assert_invariants();
}

#[test]
fn the_writes_of_a_job_that_was_rescued_or_cancelled_are_rolled_back() {
    let db = Db::new();
    let conn = &mut db.connect();
    let pool = One(Mutex::new(db.connect()));
    for cancelled in [true, false] {
        let worker = register(conn);
        let job = claimed(conn, &worker, any());
        let run = run(&job, &pool);
        assert!(run.connection(|conn: &mut Conn| Ok(run.is_mine(conn)?)).unwrap());
        if cancelled {
            Job::cancel(conn, job.id(), "why").unwrap();
        } else {
            super::support::kill(conn, &worker);
        }
        let error = run.transaction(write).unwrap_err();
        assert!(
            matches!(error.downcast_ref(), Some(JobError::Lost(id)) if *id == job.id()),
            "{error}"
        );
        assert!(!run.is_recorded());
        assert!(!run.connection(|conn: &mut Conn| Ok(run.is_mine(conn)?)).unwrap());
        assert_eq!(effects(&db), 0);
    }
    db.assert_invariants();
}

#[test]
fn a_transaction_that_fails_leaves_the_job_to_its_retry() {
    let db = Db::new();
    let conn = &mut db.connect();
    let pool = One(Mutex::new(db.connect()));
    let worker = register(conn);
    let job = claimed(conn, &worker, any());
    let error = run(&job, &pool)
        .transaction(|conn: &mut Conn| {
            write(conn)?;
            anyhow::bail!("no luck");
            #[allow(unreachable_code)]
            Ok(())
        })
        .unwrap_err();
    assert_eq!(error.to_string(), "no luck");
    assert_eq!(effects(&db), 0);
    let outcome = Outcome::of_error(&error, Duration::ZERO);
    assert_eq!(job.ticket.record(conn, &outcome).unwrap(), Status::Scheduled);
    promote_all(&db, conn);
    let again = claim(conn, &worker);
    run(&again, &pool).transaction(write).unwrap();
    assert_eq!(effects(&db), 1);
    db.assert_invariants();
}

#[test]
fn a_result_that_cannot_be_kept_undoes_the_transaction_and_fails_for_good() {
    let db = Db::new();
    let conn = &mut db.connect();
    let pool = One(Mutex::new(db.connect()));
    let worker = register(conn);
    let job = claimed(conn, &worker, any());
    let error = run(&job, &pool)
        .transaction(|conn: &mut Conn| {
            write(conn)?;
            Ok("x".repeat(2 << 20))
        })
        .unwrap_err();
    assert_eq!(effects(&db), 0);
    let outcome = Outcome::of_error(&error, Duration::ZERO);
    assert_eq!(job.ticket.record(conn, &outcome).unwrap(), Status::Failed);
    db.assert_invariants();
}

#[test]
fn a_job_enqueues_others_in_its_transaction() {
    let db = Db::new();
    let conn = &mut db.connect();
    let pool = One(Mutex::new(db.connect()));
    let worker = register(conn);
    let job = claimed(conn, &worker, any().unique("key"));
    let next = run(&job, &pool)
        .transaction(|conn: &mut Conn| Ok(any().unique("next").enqueue(conn)?.id))
        .unwrap();
    assert_eq!(Job::find(conn, job.id()).unwrap().output::<i64>().unwrap(), next);
    assert_eq!(Job::find(conn, next).unwrap().status(), Status::New);
    db.assert_invariants();
}

#[test]
fn a_wrong_connection_type_or_an_empty_pool_is_an_error() {
    let db = Db::new();
    let conn = &mut db.connect();
    let pool = One(Mutex::new(db.connect()));
    let worker = register(conn);
    let job = claimed(conn, &worker, any());
    let error = run(&job, &pool).connection(|_: &mut String| Ok(())).unwrap_err();
    assert!(error.to_string().contains("String"), "{error}");
    // It could never succeed.
    let end = Outcome::of_error(&error, Duration::ZERO);
    assert!(matches!(end, Outcome::FailedForGood(_)), "{end:?}");
    let error = run(&job, &Nobody).connection(|_: &mut Conn| Ok(())).unwrap_err();
    assert_eq!(error.to_string(), "the pool is empty");
    db.assert_invariants();
}

#[test]
fn a_run_tells_what_it_is() {
    let db = Db::new();
    let conn = &mut db.connect();
    let worker = register(conn);
    let job = claimed(conn, &worker, any().max_attempts(2));
    let stopping = AtomicBool::new(false);
    let context = 7;
    let run = Run::new(&context, &job.ticket, &Nobody, &stopping);
    assert_eq!((*run.context(), run.job_id(), run.attempt()), (7, job.id(), 1));
    assert!(!run.is_last_attempt() && !run.is_stopping());
    stopping.store(true, Ordering::Relaxed);
    assert!(run.is_stopping());
    job.fail(conn, "no").unwrap();
    promote_all(&db, conn);
    let job = claim(conn, &worker);
    assert!(Run::new(&(), &job.ticket, &Nobody, &stopping).is_last_attempt());
    db.assert_invariants();
}
