//! Jobs come steadily, at half the rate at which the worker could drain them.

use crate::clock;
use crate::contenders::{field, gatun};
use crate::jobs::Timed;
use crate::run::Bench;
use crate::server::Place;
use anyhow::{Context, Result, ensure};
use job_core::Job;
use rustix::process::{Pid, Signal, kill_process};
use std::process::Child;
use std::time::Duration;

const NAME: &str = "sustained";

/// How many jobs one enqueue call has.
const BATCH: usize = 100;

/// The tables through which every job passes: they must not grow with the number of jobs.
const PASSED: &str = "SELECT pg_total_relation_size('jobs_new') + pg_total_relation_size('jobs_processing')";
/// The tables in which every job stays.
const KEPT: &str = "SELECT pg_total_relation_size('jobs') + pg_total_relation_size('jobs_finished')";

pub fn measure(bench: &mut Bench) -> Result<()> {
    let rate = bench
        .figures
        .of_round(bench.round, "drain", "gatun", "jobs/s")
        .context("no drain")?
        / 2.0;
    let seconds = (bench.options.scale * 20.0).max(3.0);
    let place = bench.server.place()?;
    gatun().call(&place.url, &["setup"])?;
    bench.server.checkpoint()?;
    let worker = gatun().start(&place.url, &["work"])?;
    let result = feed(&place, rate, seconds);
    let answer = stop(worker);
    let (jobs, middle, end) = result?;
    let answer = answer?;
    gatun().verify(&place, jobs)?;
    bench.note(NAME, "gatun", "jobs/s", rate);
    for (field_name, metric) in [("p50_ms", "p50 ms"), ("p99_ms", "p99 ms"), ("max_ms", "max ms")] {
        bench.note(NAME, "gatun", metric, field(&answer, field_name)?);
    }
    bench.note(
        NAME,
        "gatun",
        "worker µs/job",
        field(&answer, "cpu_us")? / jobs as f64,
    );
    bench.note(NAME, "gatun", "hot tables at half time MiB", middle / 1_048_576.0);
    bench.note(NAME, "gatun", "hot tables at the end MiB", end / 1_048_576.0);
    bench.note(NAME, "gatun", "kept B/job", place.number(KEPT)? / jobs as f64);
    Ok(())
}

/// Enqueues at the rate for some seconds, waits until all is done, and gives the number of jobs and the size of the hot tables
/// at half time and at the end.
fn feed(place: &Place, rate: f64, seconds: f64) -> Result<(usize, f64, f64)> {
    let conn = &mut place.connect()?;
    // The worker is listening by then.
    std::thread::sleep(Duration::from_secs(1));
    let batches = (rate * seconds / BATCH as f64) as u64;
    let began = clock::now();
    let mut middle = 0.0;
    for batch in 0..batches {
        clock::sleep_until(began + (batch as f64 * BATCH as f64 / rate * 1e9) as u64);
        let called = clock::now();
        Job::enqueue_all(conn, (0..BATCH).map(|_| Timed::new(called)))?;
        if batch == batches / 2 {
            middle = place.number(PASSED)?;
        }
    }
    let jobs = batches as usize * BATCH;
    let end = place.number(PASSED)?;
    for _ in 0..600 {
        if place.number("SELECT count(*) FROM jobs_finished")? == jobs as f64 {
            return Ok((jobs, middle, end));
        }
        std::thread::sleep(Duration::from_millis(100));
    }
    anyhow::bail!("the worker did not keep up")
}

/// Asks a worker to stop and gives what it says.
pub fn stop(worker: Child) -> Result<serde_json::Value> {
    let pid = Pid::from_raw(worker.id() as i32).context("a process number")?;
    let asked = kill_process(pid, Signal::TERM);
    let answer = gatun().answer(worker, &["work"]);
    ensure!(asked.is_ok(), "the worker ended by itself");
    answer
}
