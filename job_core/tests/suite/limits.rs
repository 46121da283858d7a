use super::support::{Echo, any, echo};
use super::{Conn, Db};
use job_core::{EnqueueError, Job, NewJob, Perform, Run};
use serde::{Deserialize, Serialize};
use std::time::Duration;

/// Enqueues it alone, in a bulk, and in a transaction that goes on, and expects the same error and no trace of it.
#[track_caller]
fn refused(db: &Db, job: impl Fn() -> NewJob, is_it: impl Fn(&EnqueueError) -> bool, says: &str) {
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

#[test]
fn arguments_have_a_size_limit_that_can_be_moved() {
    let db = Db::new();
    let big = || echo(&"x".repeat(1 << 20)).job();
    refused(
        &db,
        big,
        |error| matches!(error, EnqueueError::ArgsTooLong { bytes, max, .. } if *bytes > *max && *max == 1 << 20),
        "keep the data in a table or a file",
    );
    refused(
        &db,
        || any().max_args_bytes(5),
        |error| {
            matches!(
                error,
                EnqueueError::ArgsTooLong {
                    bytes: 14,
                    max: 5,
                    ..
                }
            )
        },
        "are 14 bytes of JSON and may be 5",
    );
    let conn: &mut Conn = &mut db.connect();
    let job = big().max_args_bytes(2 << 20).enqueue(conn).unwrap();
    assert_eq!(job.args::<Echo>().unwrap().text.len(), 1 << 20);
    db.assert_invariants();
}

#[derive(Serialize, Deserialize)]
struct Table {
    cells: std::collections::HashMap<(i32, i32), i32>,
}

impl Perform for Table {
    const KIND: &'static str = "table";
    type Context = ();
    type Output = ();
    fn perform(&self, _: &Run<'_, ()>) -> anyhow::Result<()> {
        Ok(())
    }
}

#[test]
fn arguments_that_are_no_json_are_refused() {
    let db = Db::new();
    let table = || {
        Table {
            cells: [((1, 2), 3)].into(),
        }
        .job()
    };
    let encode = |error: &EnqueueError| matches!(error, EnqueueError::Encode { kind: "table", .. });
    refused(
        &db,
        table,
        encode,
        "the arguments of table cannot be written as JSON",
    );
}

#[test]
fn case_27_nul_in_the_arguments_is_kept_or_refused_with_a_clear_error() {
    let db = Db::new();
    let nul = || echo("a\0b").job();
    if <<Conn as job_db::DbConnection>::Db as job_core::Database>::JSON_HOLDS_NUL {
        let job = nul().enqueue(&mut db.connect()).unwrap();
        let found = Job::find(&mut db.connect(), job.id).unwrap();
        assert_eq!(found.args::<Echo>().unwrap().text, "a\0b");
        db.assert_invariants();
    } else {
        let is_nul = |error: &EnqueueError| matches!(error, EnqueueError::NulInArgs { .. });
        refused(&db, nul, is_nul, "hold the character NUL");
    }
    // What only looks like a NUL is none.
    let conn = &mut db.connect();
    let job = echo("\\u0000 \\").job().enqueue(conn).unwrap();
    let found = Job::find(conn, job.id).unwrap();
    assert_eq!(found.args::<Echo>().unwrap().text, "\\u0000 \\");
}

#[derive(Serialize, Deserialize)]
struct Tree(Vec<Tree>);

impl Perform for Tree {
    const KIND: &'static str = "tree";
    type Context = ();
    type Output = ();
    fn perform(&self, _: &Run<'_, ()>) -> anyhow::Result<()> {
        Ok(())
    }
}

fn tree(depth: usize) -> Tree {
    (1..depth).fold(Tree(Vec::new()), |inner, _| Tree(vec![inner]))
}

#[test]
fn arguments_that_are_too_deep_to_be_decoded_are_refused() {
    let db = Db::new();
    for depth in [128, 129, 1_000] {
        refused(
            &db,
            || tree(depth).job(),
            |error| matches!(error, EnqueueError::ArgsTooDeep { kind: "tree" }),
            "more than 127 levels deep",
        );
    }
    let job = tree(127).enqueue(&mut db.connect()).unwrap();
    Job::find(&mut db.connect(), job.id)
        .unwrap()
        .args::<Tree>()
        .unwrap();
    db.assert_invariants();
}

#[test]
fn numbers_are_kept_to_the_last_digit() {
    let db = Db::new();
    let conn = &mut db.connect();
    let worker = super::support::register(conn);
    let numbers = (
        [
            f64::MAX,
            f64::MIN_POSITIVE,
            0.1,
            1.0 / 3.0,
            -0.0,
            123_456.789_012_345_67,
            5e-324,
        ],
        [u64::MAX, i64::MAX as u64 + 1, (1 << 53) + 1],
        [i64::MIN, -1],
    );
    let job = super::support::claimed(conn, &worker, any());
    job.complete(conn, &numbers).unwrap();
    let kept: ([f64; 7], [u64; 3], [i64; 2]) = Job::find(conn, job.id()).unwrap().output().unwrap();
    assert_eq!(kept, numbers);
    db.assert_invariants();
}
