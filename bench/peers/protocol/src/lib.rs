//! The protocol of the contenders, for those in Rust: see `bench/README.md`.

use std::fs;
use std::time::{Duration, Instant};

/// A verb of the command line, with its numbers.
pub fn verb() -> (String, Vec<usize>) {
    let mut args = std::env::args().skip(1);
    let verb = args.next().unwrap_or_default();
    (verb, args.filter_map(|arg| arg.parse().ok()).collect())
}

/// The database.
pub fn url() -> String {
    std::env::var("DATABASE_URL").expect("DATABASE_URL")
}

/// The arguments of a job, about 100 bytes.
pub fn padding() -> String {
    "x".repeat(76)
}

/// This process's CPU time, user and system, in microseconds. The unit of `/proc` is a hundredth of a second.
pub fn cpu_us() -> f64 {
    let stat = fs::read_to_string("/proc/self/stat").unwrap_or_default();
    let fields: Vec<&str> = stat.rsplit(')').next().unwrap_or("").split_whitespace().collect();
    let ticks = |at: usize| {
        fields
            .get(at)
            .and_then(|text| text.parse::<f64>().ok())
            .unwrap_or(0.0)
    };
    (ticks(11) + ticks(12)) * 10_000.0
}

fn peak_kib() -> u64 {
    fs::read_to_string("/proc/self/status")
        .unwrap_or_default()
        .lines()
        .find_map(|line| {
            line.strip_prefix("VmHWM:")?
                .trim()
                .strip_suffix(" kB")?
                .parse()
                .ok()
        })
        .unwrap_or(0)
}

/// The answer to `setup`.
pub fn say_setup(version: &str, setting: &str) {
    println!("{{\"version\":\"{version}\",\"setting\":\"{setting}\"}}");
}

/// The answer to `enqueue`, `single` and `bulk`.
pub fn say_rate(jobs: usize, began: Instant) {
    println!(
        "{{\"jobs\":{jobs},\"seconds\":{}}}",
        began.elapsed().as_secs_f64()
    );
}

/// The answer to a `bulk` by a queue that has no call for many jobs.
pub fn say_no_bulk() {
    println!("{{\"jobs\":0,\"seconds\":1}}");
}

/// The answer to `drain`.
pub fn say_drain(jobs: usize, took: Duration, cpu_before: f64) {
    println!(
        "{{\"jobs\":{jobs},\"seconds\":{},\"cpu_us\":{},\"peak_kib\":{}}}",
        took.as_secs_f64(),
        cpu_us() - cpu_before,
        peak_kib()
    );
}

/// The answer to `idle`.
pub fn say_idle(cpu_us: f64) {
    println!("{{\"cpu_us\":{cpu_us}}}");
}

/// How long a worker has to come to rest before it counts as idle.
pub const SETTLE: Duration = Duration::from_secs(3);

/// One sample of `latency`.
#[derive(Clone, Copy)]
pub struct Sample {
    pub called: Instant,
    pub returned: Instant,
    pub began: Instant,
}

/// The answer to `latency`.
pub fn say_latency(samples: &[Sample]) {
    let back = sorted(samples, |sample| sample.returned);
    let call = sorted(samples, |sample| sample.called);
    println!(
        "{{\"jobs\":{},\"p50_ms\":{},\"p99_ms\":{},\"call_p50_ms\":{},\"call_p99_ms\":{}}}",
        samples.len(),
        percentile(&back, 0.5),
        percentile(&back, 0.99),
        percentile(&call, 0.5),
        percentile(&call, 0.99)
    );
}

fn sorted(samples: &[Sample], from: fn(&Sample) -> Instant) -> Vec<f64> {
    let mut millis: Vec<f64> = samples
        .iter()
        .map(|sample| {
            let from = from(sample);
            // Negative where the job began before the call returned.
            match sample.began.checked_duration_since(from) {
                Some(time) => time.as_secs_f64() * 1e3,
                None => -(from - sample.began).as_secs_f64() * 1e3,
            }
        })
        .collect();
    millis.sort_by(f64::total_cmp);
    millis
}

fn percentile(sorted: &[f64], share: f64) -> f64 {
    let at = (sorted.len() as f64 * share).ceil() as usize;
    sorted
        .get(at.clamp(1, sorted.len().max(1)) - 1)
        .copied()
        .unwrap_or(0.0)
}

/// 30 to 80 ms, different each time.
pub fn pause(n: usize) -> Duration {
    let mixed = (n as u64 + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    Duration::from_millis(30 + (mixed >> 33) % 50)
}
