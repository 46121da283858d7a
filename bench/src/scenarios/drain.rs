//! How fast a worker empties a queue.

use super::bare;
use super::fill::Fill;
use crate::contenders::{Contender, field, gatun};
use crate::run::Bench;
use crate::server::Place;
use anyhow::Result;
use serde_json::Value;

const NAME: &str = "drain";

/// The name of ours in the figures, where completed jobs are deleted.
pub const DISCARDING: &str = "gatun, discarding";

pub fn measure(bench: &mut Bench) -> Result<()> {
    let jobs = bench.options.size(gatun().drain, 1_000);
    // First or second by turns, so that neither always has the fresher server.
    if !bench.round.is_multiple_of(2) {
        bare_loop(bench, jobs)?;
    }
    bench.each(one)?;
    discarding(bench, jobs)?;
    if bench.round.is_multiple_of(2) {
        bare_loop(bench, jobs)?;
    }
    Ok(())
}

/// Ours with jobs that are deleted when they have completed, for the queues that do no other.
fn discarding(bench: &mut Bench, jobs: usize) -> Result<()> {
    let place = bench.server.place()?;
    gatun().call(&place.url, &["setup"])?;
    gatun().call(&place.url, &["enqueue-gone", &jobs.to_string()])?;
    counted(bench, NAME, DISCARDING, |_| {
        let answer = gatun().call(&place.url, &["drain", "0"])?;
        let left = place.number("SELECT count(*) FROM jobs")?;
        anyhow::ensure!(left == 0.0, "{left} jobs are left");
        Ok(answer)
    })
}

fn one(bench: &mut Bench, contender: &'static Contender) -> Result<()> {
    let jobs = bench.options.size(contender.drain, 1_000);
    let place = bench.server.place()?;
    contender.call(&place.url, &["setup"])?;
    contender.call(&place.url, &["enqueue", &jobs.to_string()])?;
    counted(bench, NAME, contender.name, |_| {
        let answer = contender.call(&place.url, &["drain", &jobs.to_string()])?;
        contender.verify(&place, jobs)?;
        Ok(answer)
    })
}

/// Measures a drain with what it costs, and notes its figures.
pub fn counted(
    bench: &mut Bench,
    scenario: &str,
    contender: &str,
    drain: impl FnOnce(&Bench) -> Result<Value>,
) -> Result<()> {
    bench.server.checkpoint()?;
    let (cpu, wal) = (bench.server.cpu()?, bench.server.wal()?);
    let answer = drain(bench)?;
    let (cpu, wal) = (bench.server.cpu()? - cpu, bench.server.wal()? - wal);
    let jobs = field(&answer, "jobs")?;
    bench.note(scenario, contender, "jobs", jobs);
    bench.note(scenario, contender, "jobs/s", jobs / field(&answer, "seconds")?);
    bench.note(
        scenario,
        contender,
        "worker µs/job",
        field(&answer, "cpu_us")? / jobs,
    );
    bench.note(scenario, contender, "server µs/job", cpu / jobs);
    bench.note(scenario, contender, "WAL B/job", wal / jobs);
    bench.note(
        scenario,
        contender,
        "peak MiB",
        field(&answer, "peak_kib")? / 1024.0,
    );
    Ok(())
}

fn bare_loop(bench: &mut Bench, jobs: usize) -> Result<()> {
    let place = gatun_place(bench, Fill::small(jobs))?;
    counted(bench, NAME, "bare loop", |_| {
        let answer = bare::drain(&place)?;
        gatun().verify(&place, jobs)?;
        Ok(answer)
    })
}

/// A database with our tables, filled.
pub fn gatun_place(bench: &Bench, fill: Fill) -> Result<Place> {
    let place = bench.server.place()?;
    gatun().call(&place.url, &["setup"])?;
    fill.put(&place)?;
    Ok(place)
}
