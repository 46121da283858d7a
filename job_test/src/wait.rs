use std::thread::sleep;
use std::time::{Duration, Instant};

const PAUSE: Duration = Duration::from_millis(20);
const LIMIT: Duration = Duration::from_secs(60);

/// Waits until something is so in another process, and panics after a minute. Within one process a barrier or a
/// channel does better, since it cannot be slow.
///
/// # Panics
/// When it has not become so within a minute.
#[track_caller]
pub fn eventually(what: &str, mut is_so: impl FnMut() -> bool) {
    let start = Instant::now();
    while !is_so() {
        assert!(
            start.elapsed() < LIMIT,
            "waited {} s in vain: {what}",
            LIMIT.as_secs()
        );
        sleep(PAUSE);
    }
}
