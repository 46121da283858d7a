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

/// The processes that run. Whichever way this ends, by an error or a panic too, none of them goes on without us.
#[derive(Default)]
struct Workers(Vec<Child>);

impl Drop for Workers {
    fn drop(&mut self) {
        for worker in &mut self.0 {
            // One that has ended already can be neither killed nor waited for in vain.
            let _ = worker.kill();
            let _ = worker.wait();
        }
    }
}

/// Starts the workers, and waits until those who live have ended well.
pub(crate) fn watch(rows: i64, count: usize) -> Result<Crew> {
    let (batches, seen): (Sender<i64>, Receiver<i64>) = channel();
    let mut workers = Workers::default();
    for _ in 0..count {
        workers.0.push(start(&batches)?);
    }
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
        let victim = &mut workers.0[0];
        victim.kill()?;
        victim.wait()?;
        *victim = start(&batches)?;
        // The next one to be killed is another one.
        workers.0.rotate_left(1);
        crew.killed += 1;
        crew.started += 1;
    }
    for worker in &mut workers.0 {
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

#[cfg(all(test, unix))]
mod tests {
    use super::*;

    #[test]
    fn no_worker_goes_on_without_us() {
        let fail = || -> Result<u32> {
            let mut workers = Workers::default();
            workers.0.push(Command::new("sleep").arg("1000").spawn()?);
            anyhow::bail!("{}", workers.0[0].id())
        };
        let pid = fail().expect_err("it fails").to_string();
        let found = Command::new("kill")
            .args(["-0", &pid])
            .stderr(Stdio::null())
            .status();
        assert!(
            !found.expect("a process").success(),
            "process {pid} is still there"
        );
    }
}
