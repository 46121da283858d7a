use super::Db;
use super::support::any;
use job_core::{EnqueueError, Job, NewJob, Perform, Run};
use serde::{Deserialize, Serialize};
use std::time::Duration;

/// Enqueues it alone, in a bulk, and in a transaction that goes on, and expects the same error and no trace of it.
#[track_caller]
pub(super) fn refused(db: &Db, job: impl Fn() -> NewJob, is_it: impl Fn(&EnqueueError) -> bool, says: &str) {
    use diesel::Connection;
    let conn = &mut db.connect();
    let check = |error: EnqueueError| {
        assert!(is_it(&error), "{error:?}");
        assert!(error.to_string().contains(says), "{error}");
    };
    check(job().enqueue(conn).unwrap_err());
    check(Job::enqueue_all(conn, [any(), job(), any()]).unwrap_err());
    conn.transaction(|conn| {
        check(job().enqueue(conn).unwrap_err());
        check(Job::enqueue_all(conn, [any(), job()]).unwrap_err());
        // The caller's transaction can go on.
        Job::counts(conn).map(drop)
    })
    .unwrap();
    for table in ["jobs", "jobs_new", "jobs_scheduled", "unique_keys"] {
        assert_eq!(db.count(&format!("SELECT count(*) FROM {table}")), 0, "{table}");
    }
    db.assert_invariants();
}

#[test]
fn names_have_1_to_255_bytes_and_no_control_characters() {
    let db = Db::new();
    let bad_name = |error: &EnqueueError| matches!(error, EnqueueError::BadName { .. });
    let too_long = "x".repeat(256);
    // Bytes, not characters.
    let emoji = "🦀".repeat(64);
    for (name, says) in [
        ("", "is empty"),
        (too_long.as_str(), "is too long"),
        (emoji.as_str(), "is too long"),
        ("a\0b", "has control characters"),
        ("a\nb", "has control characters"),
        ("a\u{7f}", "has control characters"),
        ("a\u{85}", "has control characters"),
    ] {
        refused(&db, || any().queue(name), bad_name, says);
        refused(&db, || any().unique(name), bad_name, says);
    }
    let conn = &mut db.connect();
    let longest = format!("{}xyz", "🦀".repeat(63));
    assert_eq!(longest.len(), 255);
    let job = any().queue(&longest).unique(&longest).enqueue(conn).unwrap();
    assert_eq!((&job.queue, job.unique_key.as_ref()), (&longest, Some(&longest)));
    db.assert_invariants();
}

#[derive(Serialize, Deserialize)]
struct Nameless;

impl Perform for Nameless {
    const KIND: &'static str = "line\nbreak";
    type Context = ();
    type Output = ();
    fn perform(&self, _: &Run<'_, ()>) -> anyhow::Result<()> {
        Ok(())
    }
}

#[test]
fn a_kind_is_checked_as_other_names_are() {
    let db = Db::new();
    refused(
        &db,
        || Nameless.job(),
        |error| matches!(error, EnqueueError::BadName { what: "kind", .. }),
        "the kind `line\\nbreak` has control characters",
    );
}

#[test]
fn attempts_and_priority_have_a_range() {
    let db = Db::new();
    for attempts in [i32::MIN, -1, 0, 1001, i32::MAX] {
        refused(
            &db,
            || any().max_attempts(attempts),
            |error| matches!(error, EnqueueError::BadMaxAttempts(n) if *n == attempts),
            "choose a number from 1 to 1000",
        );
    }
    for priority in [i32::MIN, -1_000_001, 1_000_001, i32::MAX] {
        refused(
            &db,
            || any().priority(priority),
            |error| matches!(error, EnqueueError::BadPriority(n) if *n == priority),
            "the lower goes first",
        );
    }
    let conn = &mut db.connect();
    for (attempts, priority) in [(1, -1_000_000), (1000, 1_000_000)] {
        let job = any().max_attempts(attempts).priority(priority);
        job.enqueue(conn).unwrap();
    }
    db.assert_invariants();
}

#[test]
fn times_are_those_that_every_database_can_hold() {
    let db = Db::new();
    for time in ["0999-12-31T23:59:59Z", "+10000-01-01T00:00:00Z"] {
        let time = time.parse().unwrap();
        refused(
            &db,
            || any().run_at(time),
            |error| matches!(error, EnqueueError::BadRunAt(_)),
            "years 1000 to 9999",
        );
    }
    for delay in [Duration::MAX, Duration::from_secs(1001 * 365 * 86_400)] {
        refused(
            &db,
            || any().run_in(delay),
            |error| matches!(error, EnqueueError::BadRunIn(_)),
            "at most 1000 years",
        );
    }
    let conn = &mut db.connect();
    let last = "9999-12-31T23:59:59.999999Z".parse().unwrap();
    assert_eq!(any().run_at(last).enqueue(conn).unwrap().run_at(), Some(last));
    let nanos = "9999-12-31T23:59:59.999999999Z".parse().unwrap();
    assert_eq!(any().run_at(nanos).enqueue(conn).unwrap().run_at(), Some(last));
    any()
        .run_in(Duration::from_secs(1000 * 365 * 86_400))
        .enqueue(conn)
        .unwrap();
    db.assert_invariants();
}
