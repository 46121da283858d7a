//! Gatun's own program in the protocol of all contenders: see `bench/README.md`.

use crate::jobs::{Desk, Gone, Nothing, Timed, Wait};
use crate::{clock, figures::percentile, proc};
use anyhow::{Context, Result, bail, ensure};
use diesel::Connection;
use diesel::r2d2::{ConnectionManager, R2D2Connection};
use job_core::{Job, JobConnection, NewJob, Perform, migrate};
use job_worker::Worker;
use serde_json::{Value, json};
use std::sync::atomic::Ordering;
use std::sync::{Arc, Barrier};
use std::thread::sleep;
use std::time::Duration;

/// How a worker of ours is set up.
struct Order {
    threads: usize,
    /// How many queues, named `q0`, `q1`, …; the queue `default` alone for 0.
    queues: usize,
    /// Stop after so many jobs, with the rest unstarted; 0 for when there are none.
    stop_after: u64,
}

/// Performs one verb on the database of `DATABASE_URL` and prints one line.
pub fn main(args: &[&str]) -> Result<()> {
    let url = std::env::var("DATABASE_URL").context("DATABASE_URL")?;
    let answer = match url.split(':').next() {
        #[cfg(feature = "postgres")]
        Some("postgres") => verb::<diesel::PgConnection>(&url, args)?,
        #[cfg(feature = "mysql")]
        Some("mysql") => verb::<diesel::MysqlConnection>(&url, args)?,
        #[cfg(feature = "sqlite")]
        Some("sqlite") => verb::<diesel::SqliteConnection>(url.trim_start_matches("sqlite:"), args)?,
        // Not the URL: it may hold a password.
        _ => bail!("this build has no database for the scheme of DATABASE_URL"),
    };
    println!("{answer}");
    Ok(())
}

fn verb<C>(url: &str, args: &[&str]) -> Result<Value>
where
    C: JobConnection + R2D2Connection + Connection + 'static,
{
    Ok(match args {
        ["setup"] => {
            migrate(&mut C::establish(url)?)?;
            json!({ "version": env!("CARGO_PKG_VERSION"), "setting": "its defaults: 8 threads, listening, history kept" })
        }
        ["enqueue", number] => bulk::<C, _>(url, number.parse()?, 10_000, |_| Nothing::new())?,
        ["enqueue", number, "--large"] => bulk::<C, _>(url, number.parse()?, 1_000, |_| Nothing::large())?,
        ["enqueue", number, "--later"] => bulk::<C, _>(url, number.parse()?, 10_000, |_| {
            NewJob::from(Nothing::new()).run_in(Duration::from_secs(86_400))
        })?,
        ["enqueue", number, "--queues", queues] => {
            let queues: usize = queues.parse()?;
            bulk::<C, _>(url, number.parse()?, 10_000, |n| {
                NewJob::from(Nothing::new()).queue(format!("q{}", n % queues))
            })?
        }
        ["enqueue-gone", number] => bulk::<C, _>(url, number.parse()?, 10_000, |_| Gone(Nothing::new()))?,
        ["bulk", number, batch] => bulk::<C, _>(url, number.parse()?, batch.parse()?, |_| Nothing::new())?,
        ["single", number] => single::<C>(url, number.parse()?, 1)?,
        ["single", number, connections] => single::<C>(url, number.parse()?, connections.parse()?)?,
        ["drain", _, options @ ..] => {
            let order = order(options)?;
            drain::<C>(url, &order)?
        }
        ["waits", number, millis] => enqueue_waits::<C>(url, number.parse()?, millis.parse()?)?,
        ["async", number] => waits::<C>(url, number.parse()?)?,
        ["latency", number] => latency::<C>(url, number.parse()?)?,
        ["idle", seconds] => work::<C>(url, Some(Duration::from_secs(seconds.parse()?)))?,
        // Until SIGTERM, for sustained load.
        ["work"] => work::<C>(url, None)?,
        _ => bail!("unknown verb {args:?}"),
    })
}

fn order(options: &[&str]) -> Result<Order> {
    let mut order = Order {
        threads: 8,
        queues: 0,
        stop_after: 0,
    };
    for pair in options.chunks(2) {
        match pair {
            ["--threads", number] => order.threads = number.parse()?,
            ["--queues", number] => order.queues = number.parse()?,
            ["--stop-after", number] => order.stop_after = number.parse()?,
            _ => bail!("unknown option {pair:?}"),
        }
    }
    Ok(order)
}

fn worker<C>(url: &str, order: &Order) -> (Worker<C, Arc<Desk>>, Arc<Desk>)
where
    C: JobConnection + R2D2Connection + 'static,
{
    let desk = Arc::new(Desk::default());
    let mut worker = Worker::new(ConnectionManager::<C>::new(url), Arc::clone(&desk))
        .register::<Nothing>()
        .register::<Gone>()
        .register::<Timed>()
        .threads(order.threads);
    if order.queues > 0 {
        worker = worker.queues((0..order.queues).map(|queue| format!("q{queue}")));
    }
    desk.stop_after.store(order.stop_after, Ordering::Relaxed);
    desk.stop.get_or_init(|| worker.handle());
    (worker, desk)
}

fn drain<C>(url: &str, order: &Order) -> Result<Value>
where
    C: JobConnection + R2D2Connection + 'static,
{
    let (worker, _desk) = worker::<C>(url, order);
    let (cpu, began) = (proc::cpu("self")?, clock::now());
    let report = worker.run_until_idle()?;
    let ended = clock::now();
    ensure!(report.failed + report.retried + report.refused == 0, "{report}");
    Ok(json!({
        "jobs": report.completed,
        "began": began,
        "ended": ended,
        "seconds": clock::seconds(began, ended),
        "cpu_us": proc::cpu("self")? - cpu,
        "peak_kib": proc::peak_kib(),
    }))
}

fn enqueue_waits<C>(url: &str, number: usize, millis: u64) -> Result<Value>
where
    C: JobConnection + Connection + 'static,
{
    Job::enqueue_all(&mut C::establish(url)?, (0..number).map(|_| Wait { millis }))?;
    Ok(json!({ "jobs": number }))
}

/// Performs so many jobs that wait, all at once; from the worker's start to the end of its stop, when all are recorded. The
/// last one to end stops it.
fn waits<C>(url: &str, number: usize) -> Result<Value>
where
    C: JobConnection + R2D2Connection + 'static,
{
    let desk = Arc::new(Desk::default());
    let worker = Worker::new(ConnectionManager::<C>::new(url), Arc::clone(&desk))
        .register_async::<Wait>()
        .async_jobs(number);
    desk.stop_after.store(number as u64, Ordering::Relaxed);
    desk.stop.get_or_init(|| worker.handle());
    let (cpu, began) = (proc::cpu("self")?, clock::now());
    let report = worker.run()?;
    let seconds = clock::seconds(began, clock::now());
    ensure!(report.completed == number as u64, "{report}");
    Ok(json!({
        "jobs": number,
        "seconds": seconds,
        "cpu_us": proc::cpu("self")? - cpu,
        "peak_kib": proc::peak_kib(),
    }))
}

fn bulk<C, J>(url: &str, number: usize, batch: usize, job: impl Fn(usize) -> J) -> Result<Value>
where
    C: JobConnection + Connection + 'static,
    J: Into<NewJob>,
{
    let conn = &mut C::establish(url)?;
    job_core::prepare_connection(conn)?;
    let began = clock::now();
    for at in (0..number).step_by(batch) {
        Job::enqueue_all(conn, (at..number.min(at + batch)).map(&job))?;
    }
    Ok(json!({ "jobs": number, "seconds": clock::seconds(began, clock::now()) }))
}

/// Enqueues jobs one by one on each of several connections at once.
fn single<C>(url: &str, number: usize, connections: usize) -> Result<Value>
where
    C: JobConnection + Connection + 'static,
{
    rate_of_many(connections, number, || {
        let mut conn = C::establish(url)?;
        job_core::prepare_connection(&mut conn)?;
        Ok(move || -> Result<()> {
            for _ in 0..number {
                Nothing::new().enqueue(&mut conn)?;
            }
            Ok(())
        })
    })
}

/// Lets several threads prepare, then work at once; gives the jobs of all and the time from the start to the last one's end.
pub fn rate_of_many<W>(
    threads: usize,
    jobs_each: usize,
    prepare: impl Fn() -> Result<W> + Sync,
) -> Result<Value>
where
    W: FnOnce() -> Result<()>,
{
    let barrier = Barrier::new(threads + 1);
    let (began, ended) = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..threads)
            .map(|_| {
                scope.spawn(|| {
                    let work = prepare();
                    barrier.wait();
                    work?()
                })
            })
            .collect();
        barrier.wait();
        let began = clock::now();
        for thread in threads {
            thread
                .join()
                .map_err(|_| anyhow::anyhow!("a thread panicked"))??;
        }
        anyhow::Ok((began, clock::now()))
    })?;
    Ok(json!({ "jobs": threads * jobs_each, "seconds": clock::seconds(began, ended) }))
}

fn latency<C>(url: &str, number: usize) -> Result<Value>
where
    C: JobConnection + R2D2Connection + Connection + 'static,
{
    let order = order(&[])?;
    let (worker, desk) = worker::<C>(url, &order);
    let stop = worker.handle();
    let working = std::thread::spawn(move || worker.stop_on_signals(false).run());
    let conn = &mut C::establish(url)?;
    job_core::prepare_connection(conn)?;
    let mut calls = Vec::new();
    for n in 0..number {
        sleep(Duration::from_millis(fastrand::u64(30..80)));
        let called = clock::now();
        Timed::new(n as u64).enqueue(conn)?;
        calls.push((called, clock::now()));
        while desk.begun().len() <= n {
            sleep(Duration::from_millis(1));
        }
    }
    stop.stop();
    working
        .join()
        .map_err(|_| anyhow::anyhow!("the worker panicked"))??;
    Ok(latencies(&calls, &desk.begun()))
}

/// Percentiles of the milliseconds from the call, and from its return, to the beginning of the job.
fn latencies(calls: &[(u64, u64)], begun: &[(u64, u64)]) -> Value {
    let sorted = |from: fn(&(u64, u64)) -> u64| {
        let mut millis: Vec<f64> = begun
            .iter()
            .map(|&(n, began)| clock::seconds(from(&calls[n as usize]), began) * 1e3)
            .collect();
        millis.sort_by(f64::total_cmp);
        millis
    };
    let (call, back) = (sorted(|call| call.0), sorted(|call| call.1));
    json!({
        "jobs": begun.len(),
        "p50_ms": percentile(&back, 0.5), "p99_ms": percentile(&back, 0.99),
        "call_p50_ms": percentile(&call, 0.5), "call_p99_ms": percentile(&call, 0.99),
    })
}

/// Works for a time or until SIGTERM.
fn work<C>(url: &str, time: Option<Duration>) -> Result<Value>
where
    C: JobConnection + R2D2Connection + Connection + 'static,
{
    let order = order(&[])?;
    let (worker, desk) = worker::<C>(url, &order);
    let stop = worker.handle();
    let working = std::thread::spawn(move || worker.run());
    let mut cpu = 0.0;
    if let Some(time) = time {
        // What the start costs is not the cost of being idle.
        sleep(SETTLE);
        cpu = proc::cpu("self")?;
        sleep(time);
        cpu = proc::cpu("self")? - cpu;
        stop.stop();
    }
    let report = working
        .join()
        .map_err(|_| anyhow::anyhow!("the worker panicked"))??;
    if time.is_none() {
        cpu = proc::cpu("self")?;
    }
    // Here a job carries the time of its enqueue call.
    let begun = desk.begun();
    let mut millis: Vec<f64> = begun
        .iter()
        .map(|&(called, began)| clock::seconds(called, began) * 1e3)
        .collect();
    millis.sort_by(f64::total_cmp);
    Ok(json!({
        "jobs": report.completed, "cpu_us": cpu, "peak_kib": proc::peak_kib(),
        "p50_ms": percentile(&millis, 0.5), "p99_ms": percentile(&millis, 0.99), "max_ms": percentile(&millis, 1.0),
    }))
}

/// How long a worker has to come to rest before it counts as idle; the driver waits as long.
pub const SETTLE: Duration = Duration::from_secs(3);
