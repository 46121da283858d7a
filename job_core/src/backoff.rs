//! When to try again.

use std::time::Duration;

const FIRST: Duration = Duration::from_secs(5);
const LONGEST: Duration = Duration::from_secs(6 * 3600);

/// How long to wait after failed attempt number `attempt` (from 1): 5 seconds, doubled for each further one, at most
/// 6 hours; then up to a tenth more or less, so that jobs that failed together do not come back together.
pub fn exponential(attempt: i32) -> Duration {
    let doublings = u32::try_from(attempt.saturating_sub(1)).unwrap_or(0);
    let delay = 2_u32
        .checked_pow(doublings)
        .and_then(|factor| FIRST.checked_mul(factor))
        .map_or(LONGEST, |delay| delay.min(LONGEST));
    jittered(delay)
}

/// A tenth more or less.
fn jittered(delay: Duration) -> Duration {
    delay.mul_f64(0.9 + 0.2 * fastrand::f64())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn backoff_grows_and_is_clamped_for_every_attempt() {
        for attempt in [i32::MIN, -1, 0, 1] {
            assert!((4.5..=5.5).contains(&exponential(attempt).as_secs_f64()));
        }
        assert!((36.0..=44.0).contains(&exponential(4).as_secs_f64()));
        for attempt in [20, 31, 32, 63, 64, 310, i32::MAX] {
            let hours = exponential(attempt).as_secs_f64() / 3600.0;
            assert!((5.4..=6.6).contains(&hours), "attempt {attempt}: {hours} h");
        }
    }
}
