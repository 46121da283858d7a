//! The monotonic clock, which all processes of a machine share.

use rustix::time::{ClockId, clock_gettime};
use std::time::Duration;

/// `CLOCK_MONOTONIC` in nanoseconds.
pub fn now() -> u64 {
    let time = clock_gettime(ClockId::Monotonic);
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}

/// The seconds from one reading to another, negative where the second came first.
pub fn seconds(from: u64, to: u64) -> f64 {
    (to as f64 - from as f64) / 1e9
}

/// Sleeps until a reading of the clock.
pub fn sleep_until(time: u64) {
    std::thread::sleep(Duration::from_nanos(time.saturating_sub(now())));
}
