//! The same on the other databases, without peers: enqueue, idle to start, the drain in calm and under bad conditions. A
//! quarter of the sizes, and everything by Gatun's own verbs, since the driver does not read the tables of these databases itself.

use crate::contenders::{field, gatun};
use crate::run::Bench;
use anyhow::{Result, ensure};
use diesel::connection::SimpleConnection;
use job_core::{Job, JobConnection, Status};
use job_test::{Kind, TestDb};
use serde_json::Value;

pub const NAME: &str = "others";

/// What the drain under bad conditions is called, with how its tables are filled beside and how it is drained.
const CONDITIONS: &[(&str, Filling, &[&str])] = &[
    ("calm", Filling::Jobs(&[]), &[]),
    ("an old snapshot is held", Filling::BesideSnapshot, &[]),
    ("backlog of 250,000", Filling::Backlog, &[]),
    ("250,000 due in the future", Filling::Beside(&["--later"]), &[]),
    ("6 KB of arguments", Filling::Few(&["--large"]), &[]),
    (
        "100 queues",
        Filling::Jobs(&["--queues", "100"]),
        &["--queues", "100"],
    ),
    ("64 threads", Filling::Jobs(&[]), &["--threads", "64"]),
    (PROCESSES, Filling::Backlog, &[]),
];
const PROCESSES: &str = "8 processes, 250,000 jobs";

#[derive(Clone, Copy)]
enum Filling {
    /// The usual number, enqueued in this way.
    Jobs(&'static [&'static str]),
    /// A fifth of it.
    Few(&'static [&'static str]),
    /// The usual number, and five times as many in this way.
    Beside(&'static [&'static str]),
    /// Five times as many, all of which are drained.
    Backlog,
    /// The usual number, while a transaction is open that sees none of what is done.
    BesideSnapshot,
}

pub fn measure(bench: &mut Bench) -> Result<()> {
    #[cfg(feature = "sqlite")]
    all(
        bench,
        "SQLite",
        "BEGIN; SELECT count(*) FROM workers",
        TestDb::<job_test::Sqlite>::empty,
        |db| format!("sqlite:{}", db.url()),
    )?;
    #[cfg(feature = "mysql")]
    {
        let server = job_test::server::MariadbServer::start();
        all(
            bench,
            "MariaDB",
            "START TRANSACTION WITH CONSISTENT SNAPSHOT",
            || TestDb::<job_test::Mysql>::new_on(&server.url()),
            |db| db.url().to_owned(),
        )?;
    }
    Ok(())
}

fn all<K>(
    bench: &mut Bench,
    name: &str,
    snapshot: &str,
    db: impl Fn() -> TestDb<K>,
    url: impl Fn(&TestDb<K>) -> String,
) -> Result<()>
where
    K: Kind<Conn: JobConnection>,
{
    let place = || -> Result<(TestDb<K>, String)> {
        let db = db();
        let url = url(&db);
        gatun().call(&url, &["setup"])?;
        Ok((db, url))
    };
    let (_db, here) = place()?;
    enqueue(bench, name, &here)?;
    drop(_db);
    let (_db, here) = place()?;
    from_idle(bench, name, &here)?;
    drop(_db);
    for (condition, filling, options) in CONDITIONS {
        let (db, here) = place()?;
        let mut beside = db.connect();
        let expected = fill(bench, &here, *filling)?;
        if let Filling::BesideSnapshot = filling {
            beside.batch_execute(snapshot)?;
        }
        let drained = if *condition == PROCESSES {
            super::adverse::together(&here, 8)?
        } else {
            gatun().call(&here, &[&["drain", "0"], *options].concat())?
        };
        drop(beside);
        let done = completed(&mut db.connect())?;
        ensure!(
            done == expected as i64,
            "{name}, {condition}: {done} of {expected} jobs are completed"
        );
        note(bench, &format!("{name}, {condition}"), &drained, expected)?;
    }
    Ok(())
}

fn enqueue(bench: &mut Bench, name: &str, url: &str) -> Result<()> {
    for connections in [1, 8] {
        let number = bench.options.size(500 / connections, 50);
        let answer = gatun().call(url, &["single", &number.to_string(), &connections.to_string()])?;
        let rate = field(&answer, "jobs")? / field(&answer, "seconds")?;
        bench.note(
            NAME,
            name,
            &format!("single, {connections} connections jobs/s"),
            rate,
        );
    }
    for batch in [100, 1_000, 10_000] {
        let number = bench.options.size(50_000, batch);
        let answer = gatun().call(url, &["bulk", &number.to_string(), &batch.to_string()])?;
        let rate = number as f64 / field(&answer, "seconds")?;
        bench.note(NAME, name, &format!("bulk {batch} jobs/s"), rate);
    }
    Ok(())
}

fn from_idle(bench: &mut Bench, name: &str, url: &str) -> Result<()> {
    let samples = bench.options.size(100, 50).to_string();
    let answer = gatun().call(url, &["latency", &samples])?;
    bench.note(NAME, name, "idle to start p50 ms", field(&answer, "p50_ms")?);
    bench.note(NAME, name, "idle to start p99 ms", field(&answer, "p99_ms")?);
    let seconds = (bench.options.scale * 10.0).clamp(5.0, 60.0).round();
    let answer = gatun().call(url, &["idle", &seconds.to_string()])?;
    let share = field(&answer, "cpu_us")? / (seconds * 1e6) * 100.0;
    bench.note(NAME, name, "idle worker % of a core", share);
    Ok(())
}

/// Gives how many jobs are to be completed.
fn fill(bench: &Bench, url: &str, filling: Filling) -> Result<usize> {
    let jobs = bench.options.size(50_000, 1_000);
    let put = |number: usize, options: &[&str]| {
        gatun().call(url, &[&["enqueue", &number.to_string()], options].concat())
    };
    Ok(match filling {
        Filling::Jobs(options) => {
            put(jobs, options)?;
            jobs
        }
        Filling::Few(options) => {
            put(jobs / 5, options)?;
            jobs / 5
        }
        Filling::Beside(options) => {
            put(5 * jobs, options)?;
            put(jobs, &[])?;
            jobs
        }
        Filling::Backlog => {
            put(5 * jobs, &[])?;
            5 * jobs
        }
        Filling::BesideSnapshot => {
            put(jobs, &[])?;
            jobs
        }
    })
}

fn note(bench: &mut Bench, name: &str, answer: &Value, jobs: usize) -> Result<()> {
    let jobs = jobs as f64;
    bench.note(NAME, name, "jobs", jobs);
    bench.note(NAME, name, "drain jobs/s", jobs / field(answer, "seconds")?);
    bench.note(NAME, name, "worker µs/job", field(answer, "cpu_us")? / jobs);
    bench.note(NAME, name, "peak MiB", field(answer, "peak_kib")? / 1024.0);
    Ok(())
}

fn completed<C: JobConnection>(conn: &mut C) -> Result<i64> {
    Ok(Job::counts(conn)?.of(Status::Completed))
}
