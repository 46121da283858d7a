//! The worker processes: at each fifth of the way one is killed, as by `kill -9`, and another is started.

use anyhow::{Context, Result, ensure};
use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread;
use std::time::Duration;

const FIFTHS: i64 = 5;
const LIMIT: Duration = Duration::from_secs(120);

pub(crate) struct Crew {
    pub(crate) started: usize,
    pub(crate) killed: usize,
}

/// Starts the workers, and waits until those who live have ended well.
pub(crate) fn watch(rows: i64, count: usize) -> Result<Crew> {
    let (batches, seen): (Sender<i64>, Receiver<i64>) = channel();
    let mut workers = (0..count)
        .map(|_| start(&batches))
        .collect::<Result<Vec<Child>>>()?;
    let mut crew = Crew {
        started: count,
        killed: 0,
    };
    let mut done = 0;
    for fifth in 1..FIFTHS {
        while done < rows * fifth / FIFTHS {
            done += seen
                .recv_timeout(LIMIT)
                .context("the workers do nothing any more")?;
        }
        let mut victim = workers.remove(0);
        let killed = victim.kill();
        victim.wait()?;
        killed?;
        workers.push(start(&batches)?);
        crew.killed += 1;
        crew.started += 1;
    }
    for mut worker in workers {
        ensure!(worker.wait()?.success(), "a worker has failed");
    }
    Ok(crew)
}

/// Starts a worker. What it writes is the number of rows of each batch.
fn start(batches: &Sender<i64>) -> Result<Child> {
    let mut worker = Command::new(std::env::current_exe()?)
        .arg("worker")
        .stdout(Stdio::piped())
        .spawn()?;
    if let Some(stdout) = worker.stdout.take() {
        let batches = batches.clone();
        thread::spawn(move || {
            let lines = BufReader::new(stdout).lines().map_while(Result::ok);
            for rows in lines.filter_map(|line| line.parse().ok()) {
                // When nobody counts any more, it goes on reading: a worker must never wait for a full pipe.
                let _ = batches.send(rows);
            }
        });
    }
    Ok(worker)
}
