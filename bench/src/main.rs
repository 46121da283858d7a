//! Measures Gatun, beside a bare loop of the same statements and beside other queues. The method is in `bench/README.md`.

mod clock;
mod contender;
mod contenders;
mod figures;
mod jobs;
mod options;
mod parallel;
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
    let met = match args.iter().map(String::as_str).collect::<Vec<_>>().as_slice() {
        ["contender", rest @ ..] => contender::main(rest).map(|()| true)?,
        ["parallel", rest @ ..] => {
            parallel::run(rest.first().map_or(Ok(3), |text| text.parse())?).map(|()| true)?
        }
        ["parallel-memory", items] => parallel::memory(items.parse()?).map(|()| true)?,
        ["--list"] => run::list().map(|()| true)?,
        rest => run::run(options::Options::parse(rest)?)?,
    };
    Ok(if met { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}
