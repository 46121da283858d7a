//! The drain under bad conditions. The calm one is the drain of the same round.

use super::drain::{counted, gatun_place};
use super::fill::Fill;
use crate::contenders::{field, gatun};
use crate::run::Bench;
use crate::server::Place;
use anyhow::{Result, ensure};
use diesel::connection::SimpleConnection;
use serde_json::{Value, json};

pub const NAME: &str = "adverse";
pub const PROCESSES: &str = "8 processes";
const CALM_OF_MANY: &str = "calm, 1M jobs";

pub fn measure(bench: &mut Bench) -> Result<()> {
    let jobs = bench.options.size(gatun().drain, 1_000);
    let million = bench.options.size(1_000_000, 1_000);

    // The same way of filling as the others here.
    let place = gatun_place(bench, Fill::small(jobs))?;
    all(bench, "calm", &place, jobs, &[])?;

    let place = gatun_place(bench, Fill::small(jobs))?;
    let mut snapshot = place.connect()?;
    snapshot.batch_execute("BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT count(*) FROM workers")?;
    all(bench, "an old snapshot is held", &place, jobs, &[])?;
    drop(snapshot);

    let place = gatun_place(bench, Fill::small(million))?;
    counted(bench, NAME, "backlog of 1M", |_| {
        gatun().call(&place.url, &["drain", "0", "--stop-after", &jobs.to_string()])
    })?;
    let finished = place.number("SELECT count(*) FROM jobs_finished WHERE status = 3")?;
    ensure!(
        bench.figures.of_round(bench.round, NAME, "backlog of 1M", "jobs") == Some(finished),
        "{finished} jobs are completed"
    );

    let place = gatun_place(
        bench,
        Fill {
            later: true,
            ..Fill::small(million)
        },
    )?;
    Fill::small(jobs).put(&place)?;
    counted(bench, NAME, "1M due in the future", |_| drain(&place, &[]))?;
    ensure!(
        place.number("SELECT count(*) FROM jobs_finished WHERE status = 3")? == jobs as f64
            && place.number("SELECT count(*) FROM jobs_scheduled")? == million as f64,
        "the wrong jobs are completed"
    );

    // A fifth of the jobs, so that the bytes are not too many.
    let fewer = bench.options.size(gatun().drain / 5, 1_000);
    let place = gatun_place(
        bench,
        Fill {
            large: true,
            ..Fill::small(fewer)
        },
    )?;
    all(bench, "6 KB of arguments", &place, fewer, &[])?;

    let place = gatun_place(
        bench,
        Fill {
            queues: 100,
            ..Fill::small(jobs)
        },
    )?;
    all(bench, "100 queues", &place, jobs, &["--queues", "100"])?;

    let place = gatun_place(bench, Fill::small(jobs))?;
    all(bench, "64 threads", &place, jobs, &["--threads", "64"])?;

    // Enough for the start of the processes, a tenth of a second each, not to be what is measured.
    let many = million.max(3 * jobs);
    let place = gatun_place(bench, Fill::small(many))?;
    all(bench, CALM_OF_MANY, &place, many, &[])?;
    let place = gatun_place(bench, Fill::small(many))?;
    counted(bench, NAME, PROCESSES, |_| {
        let answer = together(&place.url, 8)?;
        gatun().verify(&place, many)?;
        Ok(answer)
    })
}

/// The measurement that a bad condition is compared with.
pub fn calm_of(name: &str) -> &'static str {
    if name == PROCESSES { CALM_OF_MANY } else { "calm" }
}

/// Drains all jobs with one worker, and verifies.
fn all(bench: &mut Bench, name: &str, place: &Place, jobs: usize, options: &[&str]) -> Result<()> {
    counted(bench, NAME, name, |_| {
        let answer = drain(place, options)?;
        gatun().verify(place, jobs)?;
        Ok(answer)
    })
}

fn drain(place: &Place, options: &[&str]) -> Result<Value> {
    let args = [&["drain", "0"], options].concat();
    gatun().call(&place.url, &args)
}

/// Several workers at once: from the start of the first to the end of the last.
pub fn together(url: &str, processes: usize) -> Result<Value> {
    let args = ["drain", "0"];
    let children = (0..processes)
        .map(|_| gatun().start(url, &args))
        .collect::<Result<Vec<_>>>()?;
    let answers = children
        .into_iter()
        .map(|child| gatun().answer(child, &args))
        .collect::<Result<Vec<_>>>()?;
    let mut sums = [0.0, 0.0, 0.0];
    let (mut began, mut ended) = (f64::MAX, 0.0_f64);
    for answer in &answers {
        for (sum, name) in sums.iter_mut().zip(["jobs", "cpu_us", "peak_kib"]) {
            *sum += field(answer, name)?;
        }
        began = began.min(field(answer, "began")?);
        ended = ended.max(field(answer, "ended")?);
    }
    Ok(json!({
        "jobs": sums[0], "cpu_us": sums[1], "peak_kib": sums[2], "seconds": (ended - began) / 1e9,
    }))
}
