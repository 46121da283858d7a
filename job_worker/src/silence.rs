use std::collections::HashMap;
use std::time::{Duration, Instant};

/// The workers that do not beat by the database's clock, and since when this one has known. After the machine of all of
/// them has slept, or the database was away, each gets the time to beat again before it is taken for dead.
#[derive(Debug, Default)]
pub(crate) struct Silence {
    since: HashMap<i64, Instant>,
}

impl Silence {
    /// Learns that nobody is silent now.
    pub(crate) fn clear(&mut self) {
        self.since.clear();
    }

    /// Learns who is silent now, and gives those who have been so for `patience` of our own time.
    pub(crate) fn lasting(&mut self, silent: &[i64], now: Instant, patience: Duration) -> Vec<i64> {
        self.since.retain(|worker, _| silent.contains(worker));
        silent
            .iter()
            .copied()
            .filter(|&worker| now.duration_since(*self.since.entry(worker).or_insert(now)) >= patience)
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Case 21: a machine that wakes from its sleep does not declare all others dead.
    #[test]
    fn the_silent_get_time_to_beat_again() {
        let (mut silence, beat) = (Silence::default(), Duration::from_secs(5));
        let wakes = Instant::now();
        assert!(silence.lasting(&[1, 2], wakes, beat).is_empty());
        assert!(silence.lasting(&[1, 2], wakes + beat / 2, beat).is_empty());
        // The first one has beaten; the other one has not.
        assert_eq!(silence.lasting(&[2], wakes + beat, beat), [2]);
        // Whoever falls silent anew begins anew.
        assert_eq!(silence.lasting(&[1, 2], wakes + 2 * beat, beat), [2]);
        silence.clear();
        assert!(silence.lasting(&[1, 2], wakes + 3 * beat, beat).is_empty());
    }
}
