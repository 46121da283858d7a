use super::Db;
use super::support::{Echo, Mail, any, echo};
use chrono::TimeDelta;
use diesel::RunQueryDsl;
use diesel::connection::{Connection, InstrumentationEvent, SimpleConnection};
use job_core::{Job, Perform, Status, now};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

/// Such as by a worker, where its kind has `DISCARD_COMPLETED`.
#[test]
fn a_timed_job_that_is_gone_before_anybody_looks_is_not_enqueued_twice() {
    let db = Db::new();
    let (conn, mut other) = (&mut db.connect(), db.connect());
    // The first is understood by MySQL alone, the second one by SQLite.
    for do_not_wait in ["SET innodb_lock_wait_timeout = 1", "PRAGMA busy_timeout = 0"] {
        let _ = other.batch_execute(do_not_wait);
    }
    let gone = Arc::new(AtomicUsize::new(0));
    let gone_too = gone.clone();
    conn.set_instrumentation(move |event: InstrumentationEvent<'_>| {
        if let InstrumentationEvent::StartQuery { query, .. } = event
            && query.to_string().contains("FROM jobs j")
        {
            let deleted = diesel::sql_query("DELETE FROM jobs_new").execute(&mut other);
            gone_too.fetch_add(deleted.unwrap_or(0), Ordering::Relaxed);
            let _ = other.batch_execute("DELETE FROM jobs");
        }
    });
    let job = any().run_in(Duration::ZERO).enqueue(conn).unwrap();
    assert_eq!(gone.load(Ordering::Relaxed), 0);
    assert_eq!(
        Job::find(&mut db.connect(), job.id).unwrap().status(),
        Status::New
    );
}

#[test]
fn a_job_has_the_defaults_of_its_kind() {
    let db = Db::new();
    let conn = &mut db.connect();
    let job = echo("hello").enqueue(conn).unwrap();
    let found = Job::find(conn, job.id).unwrap();
    for job in [&job, &found] {
        assert_eq!((job.kind.as_str(), job.queue.as_str()), ("echo", "default"));
        assert_eq!((job.priority, job.max_attempts, job.attempts()), (0, 12, 0));
        assert_eq!(job.unique_key, None);
        assert_eq!(job.args::<Echo>().unwrap(), echo("hello"));
        assert_eq!(job.status(), Status::New);
        assert_eq!(
            (job.run_at(), job.started_at(), job.finished_at()),
            (None, None, None)
        );
        assert_eq!((job.worker(), job.last_error()), (None, None));
    }
    assert_eq!(job.created_at, found.created_at);
    let mail = Mail { to: 7 }.enqueue(conn).unwrap();
    let mail = Job::find(conn, mail.id).unwrap();
    assert_eq!((mail.kind.as_str(), mail.queue.as_str()), ("mail", "post"));
    assert_eq!((mail.priority, mail.max_attempts), (3, 2));
    db.assert_invariants();
}

#[test]
fn a_job_has_the_options_that_it_was_given() {
    let db = Db::new();
    let conn = &mut db.connect();
    let before = now(conn).unwrap();
    let job = echo("later")
        .job()
        .queue("payments")
        .priority(-5)
        .run_in(Duration::from_secs(600))
        .unique("order-17")
        .max_attempts(8)
        .enqueue(conn)
        .unwrap();
    let after = now(conn).unwrap();
    for job in [&job, &Job::find(conn, job.id).unwrap()] {
        assert_eq!(
            (job.queue.as_str(), job.priority, job.max_attempts),
            ("payments", -5, 8)
        );
        assert_eq!(job.unique_key.as_deref(), Some("order-17"));
        assert_eq!(job.status(), Status::Scheduled);
        let run_at = job.run_at().unwrap();
        let wait = TimeDelta::seconds(600);
        // SQLite's clock has milliseconds.
        let rounding = TimeDelta::milliseconds(1);
        assert!(before + wait - rounding <= run_at && run_at <= after + wait + rounding);
        assert!(before - rounding <= job.created_at && job.created_at <= after + rounding);
    }
    db.assert_invariants();
}

#[test]
fn run_at_keeps_its_microseconds_and_the_last_of_run_at_and_run_in_counts() {
    let db = Db::new();
    let conn = &mut db.connect();
    let time = "2999-03-29T01:30:00.123456Z".parse().unwrap();
    let job = any()
        .run_in(Duration::from_secs(1))
        .run_at(time)
        .enqueue(conn)
        .unwrap();
    assert_eq!(job.run_at(), Some(time));
    let job = any().run_at(time).run_in(Duration::ZERO).enqueue(conn).unwrap();
    assert_eq!(job.status(), Status::New);
    db.assert_invariants();
}

#[test]
fn a_time_that_has_passed_means_at_once() {
    let db = Db::new();
    let conn = &mut db.connect();
    let now = now(conn).unwrap();
    for time in [
        now - TimeDelta::microseconds(1),
        "1970-01-01T00:00:00Z".parse().unwrap(),
        "1000-01-01T00:00:00Z".parse().unwrap(),
    ] {
        let job = any().run_at(time).enqueue(conn).unwrap();
        assert_eq!(job.status(), Status::New, "{time}");
    }
    let job = any().run_in(Duration::from_nanos(1)).enqueue(conn).unwrap();
    assert_eq!(job.status(), Status::New);
    db.assert_invariants();
}

#[test]
fn a_unique_key_gives_the_existing_job_whatever_its_kind_and_queue() {
    let db = Db::new();
    let conn = &mut db.connect();
    let first = any().unique("key").enqueue(conn).unwrap();
    let twin = Mail { to: 1 }
        .job()
        .unique("key")
        .run_in(Duration::from_secs(60))
        .enqueue(conn)
        .unwrap();
    assert_eq!((twin.id, twin.kind.as_str()), (first.id, "echo"));
    assert_eq!(twin.status(), Status::New);
    assert_ne!(any().unique("other").enqueue(conn).unwrap().id, first.id);
    assert_eq!(db.count("SELECT count(*) FROM jobs"), 2);
    db.assert_invariants();
}
