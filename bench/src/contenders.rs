//! The queues that are measured beside each other: how each is installed, called and verified.

use crate::server::Place;
use anyhow::{Context, Result, bail, ensure};
use serde_json::Value;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

/// What a contender is made of, and so how it is installed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Made {
    /// Gatun, in this program.
    Here,
    /// A Cargo project.
    Rust,
    /// A folder with `package.json` and `main.js`.
    Node,
    /// A folder with `requirements.txt` and `main.py`.
    Python,
}

/// One queue.
#[derive(Debug)]
pub struct Contender {
    /// Also its folder in `bench/peers`.
    pub name: &'static str,
    pub made: Made,
    /// How many jobs a drain has: about ten seconds' worth, at most 200,000.
    pub drain: usize,
    /// How many jobs a measurement of enqueueing in bulk has.
    pub bulk: usize,
    /// Whether a completed job stays in its tables.
    pub keeps: bool,
    /// Whether it uses Diesel.
    pub diesel: bool,
    /// How many jobs are not completed.
    left: &'static str,
    /// How many completed jobs are kept; for those that keep them.
    kept: &'static str,
}

/// Gatun first.
pub const CONTENDERS: &[Contender] = &[
    Contender {
        name: "gatun",
        made: Made::Here,
        drain: 200_000,
        bulk: 100_000,
        keeps: true,
        diesel: true,
        left: "SELECT (SELECT count(*) FROM jobs_new) + (SELECT count(*) FROM jobs_processing)
                    + (SELECT count(*) FROM jobs_scheduled)",
        kept: "SELECT count(*) FROM jobs_finished JOIN jobs ON id = job_id WHERE status = 3",
    },
    Contender {
        name: "graphile_worker",
        made: Made::Rust,
        drain: 200_000,
        bulk: 50_000,
        keeps: false,
        diesel: false,
        left: "SELECT count(*) FROM graphile_worker._private_jobs",
        kept: "",
    },
    Contender {
        name: "apalis-diesel-postgres",
        made: Made::Rust,
        drain: 10_000,
        bulk: 20_000,
        keeps: true,
        diesel: true,
        left: "SELECT count(*) FROM apalis.jobs WHERE status <> 'Done'",
        kept: "SELECT count(*) FROM apalis.jobs WHERE status = 'Done'",
    },
    Contender {
        name: "fang",
        made: Made::Rust,
        drain: 10_000,
        bulk: 5_000,
        keeps: false,
        diesel: true,
        left: "SELECT count(*) FROM fang_tasks",
        kept: "",
    },
    Contender {
        name: "graphile-worker",
        made: Made::Node,
        drain: 200_000,
        bulk: 50_000,
        keeps: false,
        diesel: false,
        left: "SELECT count(*) FROM graphile_worker._private_jobs",
        kept: "",
    },
    Contender {
        name: "pg-boss",
        made: Made::Node,
        drain: 100_000,
        bulk: 50_000,
        keeps: true,
        diesel: false,
        left: "SELECT count(*) FROM pgboss.job WHERE name = 'nothing' AND state <> 'completed'",
        kept: "SELECT count(*) FROM pgboss.job WHERE name = 'nothing' AND state = 'completed'",
    },
    Contender {
        name: "procrastinate",
        made: Made::Python,
        drain: 3_000,
        bulk: 10_000,
        keeps: true,
        diesel: false,
        left: "SELECT count(*) FROM procrastinate_jobs WHERE status <> 'succeeded'",
        kept: "SELECT count(*) FROM procrastinate_jobs WHERE status = 'succeeded'",
    },
];

/// Gatun itself.
pub fn gatun() -> &'static Contender {
    &CONTENDERS[0]
}

impl Contender {
    fn folder(&self) -> PathBuf {
        Path::new(env!("CARGO_MANIFEST_DIR"))
            .join("peers")
            .join(self.name)
    }

    /// Whether it can be called without an installation.
    pub fn is_installed(&self) -> bool {
        let folder = self.folder();
        match self.made {
            Made::Here => true,
            Made::Rust => self.binary().exists(),
            Made::Node => folder.join("node_modules").exists(),
            Made::Python => folder.join(".venv/installed").exists(),
        }
    }

    fn binary(&self) -> PathBuf {
        let name = format!("peer-{}", self.name.replace('_', "-"));
        self.folder().join("target/release").join(name)
    }

    /// Installs what is missing, as its lock file says.
    pub fn install(&self) -> Result<()> {
        let folder = self.folder();
        let steps: &[&[&str]] = match self.made {
            Made::Here => &[],
            Made::Rust => &[&["cargo", "build", "--release", "--locked"]],
            _ if self.made != Made::Rust && self.is_installed() => &[],
            Made::Node => &[&["npm", "ci", "--no-audit", "--no-fund"]],
            Made::Python => &[
                &["python3", "-m", "venv", ".venv"],
                &[".venv/bin/pip", "install", "--quiet", "-r", "requirements.txt"],
                &["touch", ".venv/installed"],
            ],
        };
        for step in steps {
            let output = Command::new(step[0])
                .args(&step[1..])
                .current_dir(&folder)
                .output()
                .with_context(|| step[0].to_owned())?;
            let text = String::from_utf8_lossy(&output.stderr);
            let last = text.lines().rev().find(|line| !line.trim().is_empty());
            ensure!(
                output.status.success(),
                "{}: {}",
                step.join(" "),
                last.unwrap_or_default()
            );
        }
        Ok(())
    }

    fn command(&self) -> Result<Command> {
        let folder = self.folder();
        let mut command = match self.made {
            Made::Here => {
                let mut command = Command::new(std::env::current_exe()?);
                command.arg("contender");
                return Ok(command);
            }
            Made::Rust => Command::new(self.binary()),
            Made::Node => {
                let mut command = Command::new("node");
                command.arg("main.js");
                command
            }
            Made::Python => {
                let mut command = Command::new(folder.join(".venv/bin/python"));
                command.arg("main.py");
                command
            }
        };
        command.current_dir(folder);
        Ok(command)
    }

    /// Starts one verb.
    pub fn start(&self, url: &str, args: &[&str]) -> Result<Child> {
        Ok(self
            .command()?
            .args(args)
            .env("DATABASE_URL", url)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()?)
    }

    /// Performs one verb and gives its answer.
    pub fn call(&self, url: &str, args: &[&str]) -> Result<Value> {
        self.answer(self.start(url, args)?, args)
    }

    /// Performs one verb; `None` where it has not ended within `limit`.
    pub fn call_within(&self, url: &str, args: &[&str], limit: Duration) -> Result<Option<Value>> {
        let mut child = self.start(url, args)?;
        let began = Instant::now();
        while child.try_wait()?.is_none() {
            if began.elapsed() >= limit {
                eprintln!("  {} {args:?} has not ended within {limit:?}", self.name);
                child.kill()?;
                child.wait()?;
                return Ok(None);
            }
            sleep(Duration::from_millis(10));
        }
        self.answer(child, args).map(Some)
    }

    /// Waits for the answer of a started verb.
    pub fn answer(&self, child: Child, args: &[&str]) -> Result<Value> {
        let output = child.wait_with_output()?;
        let text = String::from_utf8_lossy(&output.stdout);
        let line = text.lines().rev().find(|line| line.starts_with('{'));
        match line {
            Some(line) if output.status.success() => Ok(serde_json::from_str(line)?),
            _ => {
                let errors = String::from_utf8_lossy(&output.stderr);
                let tail: Vec<&str> = errors.lines().rev().take(5).collect();
                bail!(
                    "{} {args:?} ended with {}: {}",
                    self.name,
                    output.status,
                    tail.join(" | ")
                )
            }
        }
    }

    /// Checks in its tables that nothing is left and that `jobs` are kept, if it keeps them.
    pub fn verify(&self, place: &Place, jobs: usize) -> Result<()> {
        let left = place.number(self.left)?;
        ensure!(
            left == 0.0,
            "{}: {left} of {jobs} jobs are left in its tables",
            self.name
        );
        if self.keeps {
            let kept = place.number(self.kept)?;
            ensure!(
                kept == jobs as f64,
                "{}: {kept} of {jobs} jobs are completed in its tables",
                self.name
            );
        }
        Ok(())
    }
}

/// A number in an answer.
pub fn field(answer: &Value, name: &str) -> Result<f64> {
    answer[name]
        .as_f64()
        .with_context(|| format!("no {name} in {answer}"))
}
