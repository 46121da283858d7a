//! From the commit of an enqueue to the start of the job, while the worker was idle.

use crate::contenders::{Contender, field};
use crate::run::Bench;
use anyhow::Result;

const NAME: &str = "latency";

pub fn measure(bench: &mut Bench) -> Result<()> {
    for contender in bench.present() {
        if let Err(error) = one(bench, contender) {
            eprintln!("  {}: {error:#}", contender.name);
        }
    }
    Ok(())
}

fn one(bench: &mut Bench, contender: &'static Contender) -> Result<()> {
    let place = bench.server.place()?;
    contender.call(&place.url, &["setup"])?;
    bench.server.checkpoint()?;
    let samples = bench.options.size(400, 50).to_string();
    let answer = contender.call(&place.url, &["latency", &samples])?;
    for (field_name, metric) in [
        ("p50_ms", "p50 ms"),
        ("p99_ms", "p99 ms"),
        ("call_p50_ms", "from the call p50 ms"),
        ("call_p99_ms", "from the call p99 ms"),
    ] {
        bench.note(NAME, contender.name, metric, field(&answer, field_name)?);
    }
    Ok(())
}
