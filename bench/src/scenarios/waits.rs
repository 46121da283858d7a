//! Thousands of async jobs that wait, at once, over few connections.

use crate::contenders::{field, gatun};
use crate::run::Bench;
use crate::server::{Place, number};
use anyhow::{Context, Result};
use std::thread::sleep;
use std::time::Duration;

const NAME: &str = "async";

/// So many jobs, each of which waits so long: one after the other they would take more than an hour.
const JOBS: usize = 5_000;
const MILLIS: u64 = 1_000;

/// How often to count the worker's connections.
const LOOK: Duration = Duration::from_millis(20);

pub fn measure(bench: &mut Bench) -> Result<()> {
    let gatun = gatun();
    let place = bench.server.place()?;
    gatun.call(&place.url, &["setup"])?;
    gatun.call(&place.url, &["waits", &JOBS.to_string(), &MILLIS.to_string()])?;
    let jobs = JOBS.to_string();
    let args = ["async", jobs.as_str()];
    let mut child = gatun.start(&place.url, &args)?;
    let connections = count_connections(bench, &place, || Ok(child.try_wait()?.is_some()))?;
    let answer = gatun.answer(child, &args)?;
    gatun.verify(&place, JOBS)?;
    bench.note(NAME, gatun.name, "jobs", JOBS as f64);
    bench.note(NAME, gatun.name, "seconds", field(&answer, "seconds")?);
    bench.note(NAME, gatun.name, "connections", connections);
    bench.note(
        NAME,
        gatun.name,
        "worker µs/job",
        field(&answer, "cpu_us")? / JOBS as f64,
    );
    bench.note(NAME, gatun.name, "peak MiB", field(&answer, "peak_kib")? / 1024.0);
    Ok(())
}

/// The most connections to a database at any time until the end, seen from another one.
fn count_connections(
    bench: &Bench,
    place: &Place,
    mut has_ended: impl FnMut() -> Result<bool>,
) -> Result<f64> {
    let mut conn = bench.server.connect()?;
    let (_, name) = place.url.rsplit_once('/').context("a URL")?;
    let query = format!("SELECT count(*) FROM pg_stat_activity WHERE datname = '{name}'");
    let mut most = 0.0_f64;
    while !has_ended()? {
        most = most.max(number(&mut conn, &query)?);
        sleep(LOOK);
    }
    Ok(most)
}
