//! Case 29: whatever a job's own code does, its worker and the other jobs go on.

use super::stage::{Stage, find, step, worker};
use super::{Conn, Db};
use anyhow::bail;
use job_core::{Job, Perform, Run, Status};
use job_worker::Worker;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::json;
use std::fmt;
use std::panic::panic_any;
use std::time::Duration;

/// Performs steps of these names beside plain ones, on one thread, and gives them as they stand then.
fn perform(
    db: &Db,
    names: &[&str],
    body: impl Fn(&str, &Run<'_, Stage>) + Send + Sync + 'static,
) -> Vec<Job> {
    let conn = &mut db.connect();
    let ids = Job::enqueue_all(conn, names.iter().map(|name| step(*name))).unwrap();
    Job::enqueue_all(conn, (0..5).map(|_| step("plain"))).unwrap();
    let report = worker(db, move |name, run| {
        body(name, run);
        Ok(json!(null))
    })
    .threads(1)
    .pool_size(1)
    .run_until_idle()
    .unwrap();
    assert_eq!(report.completed, 5);
    assert_eq!(report.failed, names.len() as u64);
    db.assert_invariants();
    ids.into_iter().map(|id| find(db, id)).collect()
}

#[test]
fn a_panic_is_a_failed_attempt_with_its_message() {
    let db = Db::new();
    let jobs = perform(&db, &["text", "string", "other"], |name, _| match name {
        "text" => panic!("a text"),
        "string" => panic!("a string of {name}"),
        "other" => panic_any(7),
        _ => {}
    });
    let errors: Vec<_> = jobs.iter().map(|job| job.last_error().unwrap()).collect();
    assert_eq!(
        errors,
        [
            "panicked: a text",
            "panicked: a string of string",
            "panicked: (no message)"
        ]
    );
    assert!(
        jobs.iter()
            .all(|job| job.status() == Status::Failed && job.attempts() == 3)
    );
}

#[test]
fn a_panic_with_a_connection_in_hand_leaves_the_pool_whole() {
    let db = Db::new();
    let jobs = perform(&db, &["connection", "transaction", "nested"], |name, run| {
        let result = match name {
            "connection" => {
                run.connection(|_: &mut Conn| -> anyhow::Result<()> { panic!("in a connection") })
            }
            "transaction" => {
                run.transaction(|_: &mut Conn| -> anyhow::Result<()> { panic!("in a transaction") })
            }
            "nested" => run.connection(|conn: &mut Conn| {
                diesel::Connection::transaction(conn, |_| -> anyhow::Result<()> { panic!("in a nested one") })
            }),
            // The only connection of the pool must be there for those behind them.
            _ => run.connection(|conn: &mut Conn| Ok(job_core::now(conn).map(|_| ())?)),
        };
        result.unwrap();
    });
    let errors: Vec<_> = jobs.iter().map(|job| job.last_error().unwrap()).collect();
    assert_eq!(
        errors,
        [
            "panicked: in a connection",
            "panicked: in a transaction",
            "panicked: in a nested one"
        ]
    );
}

/// An error, an output, a payload and arguments whose own code panics.
#[derive(Debug)]
struct Bomb;

impl fmt::Display for Bomb {
    fn fmt(&self, _: &mut fmt::Formatter<'_>) -> fmt::Result {
        panic!("while it was shown")
    }
}

impl std::error::Error for Bomb {}

impl Serialize for Bomb {
    fn serialize<S: Serializer>(&self, _: S) -> Result<S::Ok, S::Error> {
        panic!("while it was written")
    }
}

/// It may be read, but its drop panics if it was armed.
#[derive(Serialize)]
struct Fragile(bool);

impl Drop for Fragile {
    fn drop(&mut self) {
        assert!(!self.0 || std::thread::panicking(), "while it was dropped");
    }
}

#[derive(Serialize)]
enum Output {
    Plain,
    Bomb(Bomb),
    Unwritable(#[serde(serialize_with = "refuse")] ()),
    Fragile(Fragile),
}

fn refuse<S: Serializer>(_: &(), _: S) -> Result<S::Ok, S::Error> {
    Err(serde::ser::Error::custom("no words for it"))
}

#[derive(Serialize)]
struct Mischief(String);

impl<'de> Deserialize<'de> for Mischief {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        assert_ne!(text, "arguments", "while they were read");
        Ok(Mischief(text))
    }
}

impl Perform for Mischief {
    const KIND: &'static str = "mischief";
    const MAX_ATTEMPTS: i32 = 2;
    type Context = ();
    type Output = Output;

    fn perform(&self, _: &Run<'_, ()>) -> anyhow::Result<Output> {
        match self.0.as_str() {
            "error" => bail!(Bomb),
            "output" => Ok(Output::Bomb(Bomb)),
            "unwritable" => Ok(Output::Unwritable(())),
            "dropped" => Ok(Output::Fragile(Fragile(true))),
            "payload" => panic_any(Fragile(true)),
            _ => Ok(Output::Plain),
        }
    }

    fn retry_delay(_attempt: i32) -> Duration {
        Duration::ZERO
    }
}

#[test]
fn code_of_the_app_that_panics_around_a_job_stops_nothing() {
    let db = Db::new();
    let conn = &mut db.connect();
    let names = [
        "arguments",
        "error",
        "output",
        "unwritable",
        "dropped",
        "payload",
        "plain",
        "plain",
    ];
    let ids = Job::enqueue_all(conn, names.map(|name| Mischief(name.into()))).unwrap();
    let report = Worker::<Conn, ()>::new(db.manager(), ())
        .register::<Mischief>()
        .threads(1)
        .run_until_idle()
        .unwrap();
    assert_eq!(report.abandoned, 0);
    let jobs: Vec<Job> = ids.into_iter().map(|id| find(&db, id)).collect();
    for (job, part) in jobs.iter().zip([
        "while they were read",
        "while it was shown",
        "while it was written",
        "no words for it",
        "while it was dropped",
        "(no message)",
    ]) {
        let error = job.last_error().unwrap_or_default();
        assert!(job.status() == Status::Failed && error.contains(part), "{job:?}");
    }
    assert_eq!(
        (jobs[6].status(), jobs[7].status()),
        (Status::Completed, Status::Completed)
    );
    db.assert_invariants();
}
