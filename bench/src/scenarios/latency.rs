//! From the commit of an enqueue to the start of the job, while the worker was idle.

use crate::contenders::{Contender, field};
use crate::run::Bench;
use anyhow::{Result, bail};
use std::time::Duration;

const NAME: &str = "latency";

pub fn measure(bench: &mut Bench) -> Result<()> {
    bench.each(one)
}

fn one(bench: &mut Bench, contender: &'static Contender) -> Result<()> {
    let samples = bench.options.size(400, 50);
    // Five times as long as the pauses between them. A worker may have been left out of its notifications, as graphile_worker
    // is now and then, and is given a second chance.
    let limit = Duration::from_millis(55 * 5 * samples as u64);
    for _ in 0..2 {
        let place = bench.server.place()?;
        contender.call(&place.url, &["setup"])?;
        bench.server.checkpoint()?;
        let args = ["latency", &samples.to_string()];
        let Some(answer) = contender.call_within(&place.url, &args, limit)? else {
            continue;
        };
        for (field_name, metric) in [
            ("p50_ms", "p50 ms"),
            ("p99_ms", "p99 ms"),
            ("call_p50_ms", "from the call p50 ms"),
            ("call_p99_ms", "from the call p99 ms"),
        ] {
            bench.note(NAME, contender.name, metric, field(&answer, field_name)?);
        }
        return Ok(());
    }
    bail!("was stuck twice")
}
