//! Measures Gatun, beside a bare loop of the same statements and beside other queues. The method is in `bench/README.md`.
//!
//! What is no queue is measured by commands of its own: `locks`, `parallel` and `partition`.

mod clock;
mod contender;
mod contenders;
mod figures;
mod jobs;
mod locks;
mod options;
mod parallel;
mod partition;
mod proc;
mod report;
mod run;
mod scenarios;
mod server;
mod targets;

use anyhow::Result;
use std::process::ExitCode;

fn main() -> Result<ExitCode> {
    env_logger::init();
    let args: Vec<String> = std::env::args().skip(1).collect();
    let args: Vec<&str> = args.iter().map(String::as_str).collect();
    let done = match args.as_slice() {
        ["contender", rest @ ..] => contender::main(rest),
        ["locks", rest @ ..] => locks::locks(number(rest, 0, 2_000)?, number(rest, 1, 3)?),
        ["parallel", rest @ ..] => parallel::run(number(rest, 0, 3)?),
        ["parallel-memory", items] => parallel::memory(items.parse()?),
        ["partition-worker", url, cover, batch] => partition::work(url, cover, batch.parse()?),
        ["partition", rest @ ..] => partition::partition(
            number(rest, 0, 1_000_000)?,
            number(rest, 1, 3)?,
            number(rest, 2, 500)?,
            rest.get(3).copied(),
        ),
        ["--list"] => run::list(),
        rest => {
            let met = run::run(options::Options::parse(rest)?)?;
            return Ok(if met { ExitCode::SUCCESS } else { ExitCode::FAILURE });
        }
    };
    done.map(|()| ExitCode::SUCCESS)
}

/// The argument at a position, or what it is if nobody says.
fn number(args: &[&str], at: usize, default: usize) -> Result<usize> {
    Ok(args.get(at).map_or(Ok(default), |text| text.parse())?)
}
