//! What processes cost, from `/proc`.

use anyhow::{Context, Result};
use rustix::param::clock_ticks_per_second;
use std::fs;

/// The fields of `/proc/<pid>/stat` behind the name: 1 is the parent, 11 and 12 user and system time, 13 and 14 the same of
/// children that have ended.
fn stat(pid: &str) -> Result<Vec<i64>> {
    let text = fs::read_to_string(format!("/proc/{pid}/stat"))?;
    let (_, fields) = text.rsplit_once(')').context("no name in stat")?;
    Ok(fields
        .split_whitespace()
        .map(|field| field.parse().unwrap_or(0))
        .collect())
}

fn micros(ticks: i64) -> f64 {
    ticks as f64 * 1e6 / clock_ticks_per_second() as f64
}

/// The CPU time of one process in microseconds; `self` for this one.
pub fn cpu(pid: &str) -> Result<f64> {
    let stat = stat(pid)?;
    Ok(micros(stat[11] + stat[12]))
}

/// The CPU time of a server: its first process, that process's children, and those of them that have ended.
pub fn server_cpu(root: u32) -> Result<f64> {
    let own = stat(&root.to_string())?;
    let mut ticks = own[11] + own[12] + own[13] + own[14];
    for entry in fs::read_dir("/proc")?.flatten() {
        let name = entry.file_name();
        let Some(pid) = name.to_str().filter(|name| name.parse::<u32>().is_ok()) else {
            continue;
        };
        // A process may end while we look.
        if let Ok(stat) = stat(pid)
            && stat[1] == i64::from(root)
        {
            ticks += stat[11] + stat[12];
        }
    }
    Ok(micros(ticks))
}

/// The parent of a process.
pub fn parent(pid: u32) -> Result<u32> {
    Ok(u32::try_from(stat(&pid.to_string())?[1])?)
}

/// The most memory that this process has had, in KiB.
pub fn peak_kib() -> u64 {
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
