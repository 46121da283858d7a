//! What is seen while the jobs are performed, and of a job afterwards.

use diesel::SqliteConnection;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use job_core::Job;
use std::io::IsTerminal;
use std::time::{Duration, Instant};

/// Shows how many of the jobs have ended, until `left` says that none is left, or that nobody performs them any more.
pub(crate) fn follow(jobs: i64, mut left: impl FnMut() -> anyhow::Result<Option<i64>>) -> anyhow::Result<()> {
    let terminal = std::io::stdout().is_terminal();
    let bar = ProgressBar::with_draw_target(
        Some(jobs.unsigned_abs()),
        if terminal {
            ProgressDrawTarget::stdout()
        } else {
            ProgressDrawTarget::hidden()
        },
    );
    bar.set_style(ProgressStyle::with_template(
        "{bar:40} {pos} of {len} jobs ended, {elapsed}",
    )?);
    let mut printed = Instant::now();
    while let Some(left) = left()? {
        bar.set_position((jobs - left).unsigned_abs());
        if !terminal && (left == 0 || printed.elapsed() >= Duration::from_secs(1)) {
            println!("{} of {jobs} jobs ended", jobs - left);
            printed = Instant::now();
        }
        if left == 0 {
            break;
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    bar.finish_and_clear();
    Ok(())
}

/// Shows what was measured.
pub(crate) fn speed(jobs: i64, time: Duration) {
    let (seconds, build) = (
        time.as_secs_f64(),
        if cfg!(debug_assertions) {
            "debug"
        } else {
            "release"
        },
    );
    println!(
        "The {jobs} jobs of the queue words had ended after {seconds:.2} s: {:.0} jobs/s, in a {build} build",
        jobs as f64 / seconds
    );
}

/// Shows a job's status, and what it said in each attempt.
pub(crate) fn history(conn: &mut SqliteConnection, title: &str, id: i64) -> anyhow::Result<()> {
    let job = Job::find(conn, id)?;
    println!();
    println!(
        "{title}: job {id}, {}, {}, attempts: {}",
        job.kind,
        job.status(),
        job.attempts()
    );
    for failure in job.failures(conn)? {
        let time = failure.failed_at.format("%H:%M:%S%.3f");
        println!(
            "    {time}  attempt {} failed: {}",
            failure.attempt, failure.error
        );
    }
    if let Some(time) = job.finished_at() {
        let end = match job.output::<String>() {
            Ok(output) => output,
            Err(_) => job.last_error().unwrap_or_default().to_owned(),
        };
        println!("    {}  {}: {end}", time.format("%H:%M:%S%.3f"), job.status());
    }
    Ok(())
}
