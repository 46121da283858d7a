//! A run: rounds of scenarios, then the report.

use crate::contenders::{CONTENDERS, Contender, Made};
use crate::figures::Figures;
use crate::options::Options;
use crate::scenarios::SCENARIOS;
use crate::server::Server;
use crate::{report, targets};
use anyhow::{Result, bail, ensure};
use std::time::Instant;

/// What a scenario has to hand.
#[derive(Debug)]
pub struct Bench {
    pub options: Options,
    pub server: Server,
    pub figures: Figures,
    /// Gatun, and the peers that take part.
    pub contenders: Vec<&'static Contender>,
    /// From 1.
    pub round: usize,
}

impl Bench {
    /// Who is measured in this round: in the short form, the peers take part in the first round only.
    fn present(&self) -> Vec<&'static Contender> {
        let all = self.contenders.iter().copied();
        all.filter(|contender| contender.made == Made::Here || self.round == 1 || !self.options.check)
            .collect()
    }

    /// Measures one contender after the other. A peer that fails has no figure in this round; where Gatun fails, the run ends.
    pub fn each(&mut self, mut one: impl FnMut(&mut Bench, &'static Contender) -> Result<()>) -> Result<()> {
        for contender in self.present() {
            match one(self, contender) {
                Err(error) if contender.made != Made::Here => eprintln!("  {}: {error:#}", contender.name),
                measured => measured?,
            }
        }
        Ok(())
    }

    /// Notes a figure and shows it.
    pub fn note(&mut self, scenario: &str, contender: &str, metric: &str, value: f64) {
        println!("  {scenario:<14} {contender:<34} {metric:<22} {value:>12.2}");
        self.figures.note(self.round, scenario, contender, metric, value);
    }
}

/// Runs what the options say; `false` where a target was missed.
pub fn run(options: Options) -> Result<bool> {
    for name in &options.only {
        ensure!(
            SCENARIOS.iter().any(|scenario| scenario.name == name),
            "there is no scenario {name}: see --list"
        );
    }
    let began = Instant::now();
    let mut bench = Bench {
        server: Server::start()?,
        figures: Figures::default(),
        contenders: Vec::new(),
        round: 0,
        options,
    };
    install(&mut bench);
    let chosen: Vec<_> = SCENARIOS
        .iter()
        .filter(|scenario| {
            let only = &bench.options.only;
            only.is_empty() && (scenario.checked || !bench.options.check)
                || only.iter().any(|name| name == scenario.name)
                // What others are compared with.
                || SCENARIOS.iter().any(|other| {
                    other.needs == Some(scenario.name) && only.iter().any(|name| name == other.name)
                })
        })
        .collect();
    for round in 1..=bench.options.rounds {
        bench.round = round;
        for scenario in &chosen {
            if round > 1 && scenario.once {
                continue;
            }
            println!(
                "round {round} of {}: {} ({:.0} s)",
                bench.options.rounds,
                scenario.name,
                began.elapsed().as_secs_f64()
            );
            (scenario.measure)(&mut bench)?;
        }
    }
    let took = began.elapsed();
    if bench.options.is_full() || bench.options.save {
        report::write(&bench, took)?;
    } else {
        print!("{}", report::tables(&bench.figures));
        print!("{}", report::other_databases(&bench.figures).unwrap_or_default());
    }
    let met = targets::print(&bench.figures);
    println!("{:.0} s", took.as_secs_f64());
    Ok(met || !bench.options.check)
}

/// Finds out who takes part. What cannot be installed is absent, and the report says so.
fn install(bench: &mut Bench) {
    for contender in CONTENDERS {
        let options = &bench.options;
        let takes_part =
            contender.made == Made::Here || options.peers || options.check && contender.is_installed();
        if !takes_part {
            continue;
        }
        println!("installing {}", contender.name);
        let setup = contender.install().and_then(|()| {
            let place = bench.server.place()?;
            contender.call(&place.url, &["setup"])
        });
        match setup {
            Ok(answer) => {
                let text = |name: &str| answer[name].as_str().unwrap_or_default().to_owned();
                bench.figures.notes.insert(
                    contender.name.to_owned(),
                    format!("{} — {}", text("version"), text("setting")),
                );
                bench.contenders.push(contender);
            }
            Err(error) => {
                eprintln!("{} is absent: {error:#}", contender.name);
                bench
                    .figures
                    .notes
                    .insert(contender.name.to_owned(), format!("absent: {error:#}"));
            }
        }
    }
}

/// Prints the scenarios' names.
pub fn list() -> Result<()> {
    if SCENARIOS.is_empty() {
        bail!("no scenarios");
    }
    for scenario in SCENARIOS {
        println!("{:<12} {}", scenario.name, scenario.about);
    }
    Ok(())
}
