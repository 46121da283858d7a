//! How fast a worker drains a queue, beside a bare loop of the same statements, interleaved in one run.
//!
//! `cargo run --release -p bench -- drain [jobs] [rounds]` starts a private PostgreSQL with default durability.
//!
//! `cargo run --release -p bench -- locks [acquisitions] [rounds]` does so for locks: see `locks.rs`.
//!
//! `cargo run --release -p bench -- parallel [rounds]` measures `in_parallel_n`: see `parallel.rs`.

mod locks;
mod parallel;
mod partition;

use anyhow::{Context, Result, ensure};
use diesel::prelude::*;
use diesel::r2d2::ConnectionManager;
use job_core::{ClaimRequest, Job, Perform, Run, Status, WorkerRow, claim, complete_all, lanes};
use job_db::Database;
use job_test::{Postgres, TestDb, server::PostgresServer};
use job_worker::Worker;
use serde::{Deserialize, Serialize};
use std::process::Command;
use std::time::{Duration, Instant};

/// The batch of the bare loop; the worker's own batches are at most twice as large.
const BATCH: i64 = 500;

/// A job that does nothing, with 100 bytes of arguments.
#[derive(Serialize, Deserialize)]
struct Nothing {
    padding: String,
}

impl Perform for Nothing {
    const KIND: &'static str = "nothing";
    type Context = ();
    type Output = ();

    fn perform(&self, _run: &Run<'_, ()>) -> Result<()> {
        Ok(())
    }
}

fn main() -> Result<()> {
    env_logger::init();
    let args: Vec<String> = std::env::args().skip(1).collect();
    match args.iter().map(String::as_str).collect::<Vec<_>>().as_slice() {
        ["work", url, threads] => work(url, threads.parse()?),
        ["drain", rest @ ..] => {
            let number = |at: usize, default| rest.get(at).map_or(Ok(default), |text| text.parse::<usize>());
            drain(number(0, 50_000)?, number(1, 3)?)
        }
        ["locks", rest @ ..] => {
            let number = |at: usize, default| rest.get(at).map_or(Ok(default), |text| text.parse::<usize>());
            locks::locks(number(0, 2_000)?, number(1, 3)?)
        }
        ["parallel", rest @ ..] => parallel::run(rest.first().map_or(Ok(3), |text| text.parse())?),
        ["parallel-memory", items] => parallel::memory(items.parse()?),
        ["partition-worker", url, cover, batch] => partition::work(url, cover, batch.parse()?),
        ["partition", rest @ ..] => {
            let number = |at: usize, default| rest.get(at).map_or(Ok(default), |text| text.parse::<usize>());
            partition::partition(
                number(0, 1_000_000)?,
                number(1, 3)?,
                number(2, 500)?,
                rest.get(3).copied(),
            )
        }
        _ => anyhow::bail!(
            "usage: bench drain [jobs] [rounds] | bench locks [acquisitions] [rounds] | bench parallel [rounds] | \
             bench partition [rows] [rounds] [batch] [cover]"
        ),
    }
}

fn work(url: &str, threads: usize) -> Result<()> {
    let report = Worker::new(ConnectionManager::<PgConnection>::new(url), ())
        .register::<Nothing>()
        .threads(threads)
        .run_until_idle()?;
    println!("{report}");
    Ok(())
}

fn drain(jobs: usize, rounds: usize) -> Result<()> {
    let server = PostgresServer::start();
    let mut worker = Vec::new();
    let mut bare = Vec::new();
    for round in 1..=rounds {
        worker.push(measure(&server, jobs, |url| {
            let done = Command::new(std::env::current_exe()?)
                .args(["work", url, "8"])
                .output()?;
            ensure!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
            Ok(())
        })?);
        bare.push(measure(&server, jobs, bare_loop)?);
        println!(
            "round {round}: worker {:.0} jobs/s, bare loop {:.0} jobs/s",
            worker[round - 1],
            bare[round - 1]
        );
    }
    let (worker, bare) = (median(worker), median(bare));
    println!("{jobs} jobs, medians of {rounds}: worker {worker:.0} jobs/s, bare loop {bare:.0} jobs/s");
    println!("ratio {:.2}", worker / bare);
    Ok(())
}

/// Fills a fresh schema, runs `work` and gives the jobs per second.
fn measure(server: &PostgresServer, jobs: usize, work: impl Fn(&str) -> Result<()>) -> Result<f64> {
    let db = TestDb::<Postgres>::new_on(&server.url());
    let conn = &mut db.connect();
    Job::enqueue_all(
        conn,
        (0..jobs).map(|_| Nothing {
            padding: "x".repeat(86),
        }),
    )?;
    db.execute("CHECKPOINT");
    let began = Instant::now();
    work(db.url())?;
    let took = began.elapsed();
    let completed = Job::counts(conn)?.of(Status::Completed);
    ensure!(
        completed == jobs as i64,
        "{completed} of {jobs} jobs are completed"
    );
    Ok(jobs as f64 / took.as_secs_f64())
}

/// The same statements, one after the other on one connection.
fn bare_loop(url: &str) -> Result<()> {
    let conn = &mut PgConnection::establish(url)?;
    <diesel::pg::Pg as Database>::prepare_session(conn, Duration::from_secs(30))?;
    let queues = ["default".to_owned()];
    let kinds = [Nothing::KIND.to_owned()];
    let worker = WorkerRow::register(conn, &queues, &kinds)?.id;
    let (queue, priority) = lanes(conn, &queues)?.into_iter().next().context("no jobs")?;
    let mut after = 0;
    loop {
        let request = ClaimRequest {
            worker,
            queue: &queue,
            priority,
            after,
            kinds: &kinds,
            limit: BATCH,
        };
        let claimed = claim(conn, &request)?;
        let Some(last) = claimed.last() else { return Ok(()) };
        after = last.ticket.job_id;
        let completions: Vec<_> = claimed.into_iter().map(|job| (job.ticket, None)).collect();
        complete_all(conn, worker, &completions)?;
    }
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}
