//! The command line of `bin/bench`.

use anyhow::{Context, Result, bail};

/// What to measure, and how much of it.
#[derive(Clone, Debug)]
pub struct Options {
    /// Scenarios; all if none is named.
    pub only: Vec<String>,
    pub peers: bool,
    pub check: bool,
    pub save: bool,
    pub scale: f64,
    pub rounds: usize,
}

impl Options {
    /// Reads the arguments.
    pub fn parse(args: &[&str]) -> Result<Self> {
        let mut options = Options {
            only: Vec::new(),
            peers: false,
            check: false,
            save: false,
            scale: 1.0,
            rounds: 3,
        };
        let mut args = args.iter();
        let mut scale = None;
        while let Some(arg) = args.next() {
            let mut value = || args.next().with_context(|| format!("{arg} needs a value"));
            match *arg {
                "--only" => options.only.push((*value()?).to_owned()),
                "--scale" => scale = Some(value()?.parse()?),
                "--rounds" => options.rounds = value()?.parse()?,
                "--peers" => options.peers = true,
                "--check" => options.check = true,
                "--save" => options.save = true,
                _ => bail!("unknown argument {arg}: see bench/README.md"),
            }
        }
        // The short form has to end within 10 minutes.
        options.scale = scale.unwrap_or(if options.check { 0.25 } else { 1.0 });
        Ok(options)
    }

    /// A size, scaled, and a multiple of `unit`.
    pub fn size(&self, full: usize, unit: usize) -> usize {
        let units = (full as f64 * self.scale / unit as f64).round() as usize;
        units.max(1) * unit
    }

    /// Whether the run is one whose figures should be kept.
    pub fn is_full(&self) -> bool {
        self.only.is_empty() && self.scale >= 1.0 && self.rounds >= 3 && !self.check
    }
}
