//! Enqueueing: one by one and in bulk.

use super::bare;
use crate::contenders::{Contender, field, gatun};
use crate::run::Bench;
use anyhow::Result;
use serde_json::Value;

const NAME: &str = "enqueue";

/// How often ours and the bare statement take turns within a round.
const TURNS: usize = 4;

pub fn measure(bench: &mut Bench) -> Result<()> {
    let place = bench.server.place()?;
    bare::set_up(&place)?;
    for connections in [1, 8] {
        let number = bench.options.size(2_000 / connections, 50);
        let args = ["single", &number.to_string(), &connections.to_string()];
        by_turns(
            bench,
            &format!("single, {connections} connections"),
            || rate(&gatun().call(&place.url, &args)?),
            || rate(&bare::single(&place, number, connections)?),
        )?;
    }
    for batch in [100, 1_000, 10_000] {
        let number = bench.options.size(gatun().bulk / TURNS, batch);
        by_turns(
            bench,
            &format!("bulk {batch}"),
            || rate(&gatun().call(&place.url, &["bulk", &number.to_string(), &batch.to_string()])?),
            || rate(&bare::bulk(&place, number, batch)?),
        )?;
    }
    bench.each(peer)
}

fn peer(bench: &mut Bench, contender: &'static Contender) -> Result<()> {
    if contender.name == gatun().name {
        return Ok(()); // measured above
    }
    let place = bench.server.place()?;
    contender.call(&place.url, &["setup"])?;
    let single = bench.options.size(1_000, 100).to_string();
    let metric = "single, 1 connections jobs/s";
    bench.server.checkpoint()?;
    bench.note(
        NAME,
        contender.name,
        metric,
        rate(&contender.call(&place.url, &["single", &single])?)?,
    );
    for batch in [100, 1_000, 10_000] {
        let number = bench.options.size(contender.bulk, batch).to_string();
        // Others have no call for many at once.
        let answer = contender.call(&place.url, &["bulk", &number, &batch.to_string()])?;
        if answer["jobs"].as_f64() > Some(0.0) {
            bench.note(
                NAME,
                contender.name,
                &format!("bulk {batch} jobs/s"),
                rate(&answer)?,
            );
        }
    }
    Ok(())
}

/// Measures ours and the bare statement by turns, and notes the median of each.
fn by_turns(
    bench: &mut Bench,
    what: &str,
    ours: impl Fn() -> Result<f64>,
    bare: impl Fn() -> Result<f64>,
) -> Result<()> {
    bench.server.checkpoint()?;
    let (mut of_ours, mut of_bare) = (Vec::new(), Vec::new());
    for turn in 0..TURNS {
        if turn % 2 == 0 {
            of_ours.push(ours()?);
            of_bare.push(bare()?);
        } else {
            of_bare.push(bare()?);
            of_ours.push(ours()?);
        }
    }
    for (name, values) in [("gatun", of_ours), ("bare statement", of_bare)] {
        let value = crate::figures::median(&values).unwrap_or(f64::NAN);
        bench.note(NAME, name, &format!("{what} jobs/s"), value);
    }
    Ok(())
}

fn rate(answer: &Value) -> Result<f64> {
    Ok(field(answer, "jobs")? / field(answer, "seconds")?)
}
