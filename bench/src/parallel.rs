//! `in_parallel_n` beside rayon and a pool written by hand on crossbeam channels, interleaved in one run.
//!
//! `cargo run --release -p bench -- parallel [rounds]` takes about two minutes for 3 rounds.

use crate::figures::median;
use anyhow::{Context, Result, ensure};
use crossbeam_channel::bounded;
use job_worker::InParallel;
use rayon::iter::{ParallelBridge, ParallelIterator};
use std::convert::Infallible;
use std::hint::black_box;
use std::process::Command;
use std::thread;
use std::time::{Duration, Instant};

/// Threads for items that compute, and for items that wait.
const COMPUTING: usize = 2;
const WAITING: usize = 8;

const TRIVIAL: u64 = 1_000_000;
const SLOW: u64 = 10_000;

/// One way of doing `items` items with so many threads; it gives the sum of the values.
type Way = (&'static str, fn(u64, usize, fn(u64) -> u64) -> Result<u64>);

const WAYS: [Way; 6] = [
    ("in_parallel_n, every outcome kept", kept),
    ("in_parallel, for_each_outcome", streamed),
    ("crossbeam pool, queue of n", |items, threads, work| {
        crossbeam(items, threads, threads, work)
    }),
    ("crossbeam pool, queue of 1,024", |items, threads, work| {
        crossbeam(items, threads, 1_024, work)
    }),
    ("crossbeam pool, batches of 256", batched),
    ("rayon, par_bridge", rayon),
];

pub(crate) fn run(rounds: usize) -> Result<()> {
    compare(
        "trivial items",
        TRIVIAL,
        COMPUTING,
        rounds,
        Duration::ZERO,
        black_box,
    )?;
    compare(
        "items of 1 ms",
        SLOW,
        WAITING,
        rounds,
        Duration::from_millis(1),
        |item| {
            thread::sleep(Duration::from_millis(1));
            item
        },
    )?;
    println!("\nPeak memory of for_each_outcome, each in a process of its own:");
    for items in ["1000000", "10000000"] {
        let done = Command::new(std::env::current_exe()?)
            .args(["parallel-memory", items])
            .output()?;
        ensure!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
        print!("{}", String::from_utf8(done.stdout)?);
    }
    Ok(())
}

/// Streams so many items and prints the peak of this process's memory.
pub(crate) fn memory(items: u64) -> Result<()> {
    streamed(items, COMPUTING, black_box)?;
    let status = std::fs::read_to_string("/proc/self/status")?;
    let peak = status
        .lines()
        .find_map(|line| line.strip_prefix("VmHWM:"))
        .context("no VmHWM")?;
    println!("{items:>12} items: {}", peak.trim());
    Ok(())
}

/// Prints the overhead of an item: what it took beyond its own time, which the threads share.
fn compare(
    what: &str,
    items: u64,
    threads: usize,
    rounds: usize,
    own: Duration,
    work: fn(u64) -> u64,
) -> Result<()> {
    println!("\n{items} {what}, {threads} threads, medians of {rounds}:");
    let mut took = vec![Vec::new(); WAYS.len()];
    let mut used = vec![Vec::new(); WAYS.len()];
    for _ in 0..rounds {
        for (at, (name, way)) in WAYS.iter().enumerate() {
            let (began, used_before) = (Instant::now(), processor_time()?);
            let sum = way(items, threads, work)?;
            took[at].push(began.elapsed().as_secs_f64());
            used[at].push(processor_time()? - used_before);
            ensure!(sum == items * (items - 1) / 2, "{name} did not do each item once");
        }
    }
    let own = own.as_secs_f64() * items as f64 / threads as f64;
    let per_item = |seconds: f64| seconds * 1e9 / items as f64;
    let median = |values: &[f64]| median(values).unwrap_or(f64::NAN);
    let ours = median(&took[0]);
    for (at, (name, _)) in WAYS.iter().enumerate() {
        let (took, used) = (median(&took[at]), median(&used[at]));
        println!(
            "  {name:<34} {took:>7.3} s  {:>6.0} ns/item over  {:>6.0} ns/item of processor  {:>6.2} x ours",
            per_item(took - own),
            per_item(used),
            took / ours
        );
    }
    Ok(())
}

/// What this process has used of the processors, in seconds, in steps of 10 ms.
fn processor_time() -> Result<f64> {
    let stat = std::fs::read_to_string("/proc/self/stat")?;
    // The name of the program, in brackets, may hold anything.
    let (_, fields) = stat.rsplit_once(')').context("no name in /proc/self/stat")?;
    let ticks = fields.split_whitespace().skip(11).take(2).map(str::parse::<u64>);
    Ok(ticks.sum::<Result<u64, _>>()? as f64 / 100.0)
}

fn kept(items: u64, threads: usize, work: fn(u64) -> u64) -> Result<u64> {
    let report = (0..items).in_parallel_n(threads, |item| Ok::<_, Infallible>(work(item)))?;
    Ok(report.into_result()?.into_iter().sum())
}

fn streamed(items: u64, threads: usize, work: fn(u64) -> u64) -> Result<u64> {
    let mut sum = 0;
    let work = |item| Ok::<_, Infallible>(work(item));
    let summary = (0..items)
        .in_parallel()
        .threads(threads)
        .for_each_outcome(work, |_, value| sum += value.unwrap_or(0))?;
    summary.into_result()?;
    Ok(sum)
}

/// What one writes by hand: a bounded channel of items, a bounded channel of values.
fn crossbeam(items: u64, threads: usize, queue: usize, work: fn(u64) -> u64) -> Result<u64> {
    let (give, take) = bounded::<(usize, u64)>(queue);
    let (tell, hear) = bounded::<(usize, Result<u64, Infallible>)>(queue);
    Ok(thread::scope(|scope| {
        for _ in 0..threads {
            let (take, tell) = (take.clone(), tell.clone());
            scope.spawn(move || {
                for (index, item) in take {
                    let _ = tell.send((index, Ok(work(item))));
                }
            });
        }
        drop((take, tell));
        scope.spawn(move || {
            for item in (0..items).enumerate() {
                let _ = give.send(item);
            }
        });
        hear.into_iter().map(|(_, value)| value.unwrap_or(0)).sum()
    }))
}

/// The same in batches: quicker, but an item waits for those before it in its batch, and the first for the last to be pulled.
fn batched(items: u64, threads: usize, work: fn(u64) -> u64) -> Result<u64> {
    const BATCH: u64 = 256;
    let (give, take) = bounded::<Vec<u64>>(threads);
    let (tell, hear) = bounded::<Vec<Result<u64, Infallible>>>(threads);
    Ok(thread::scope(|scope| {
        for _ in 0..threads {
            let (take, tell) = (take.clone(), tell.clone());
            scope.spawn(move || {
                for batch in take {
                    let _ = tell.send(batch.into_iter().map(|item| Ok(work(item))).collect());
                }
            });
        }
        drop((take, tell));
        scope.spawn(move || {
            for first in (0..items).step_by(BATCH as usize) {
                let _ = give.send((first..items.min(first + BATCH)).collect());
            }
        });
        hear.into_iter().flatten().map(|value| value.unwrap_or(0)).sum()
    }))
}

fn rayon(items: u64, threads: usize, work: fn(u64) -> u64) -> Result<u64> {
    let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build()?;
    Ok(pool.install(|| (0..items).par_bridge().map(work).sum()))
}
