use std::fmt;
use std::time::Duration;

/// How the rows are shared out among partitions.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Cover {
    /// Each partition is a range of keys, the first and the last with open ends. An index on the key serves it, and each row
    /// is read by one worker. The choice for almost every table.
    #[default]
    Range,
    /// Each partition is a remainder of the key, `((key % n) + n) % n`, or of a number that is made from it. Every pass over a
    /// partition reads the index of the whole table, so that this costs as many scans as there are partitions; it is
    /// for tables whose pending rows are few, in one place, and served by an index of their own.
    Modulo,
}

/// How many rows may fail before a run ends.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Failures {
    /// This many; one more ends it.
    Count(u64),
    /// This share of the rows that this run has seen, where it counts at least 1000: `0.01` allows ten from the
    /// start.
    Share(f64),
}

/// Fewer rows than these are no sample.
const SAMPLE: u64 = 1000;

impl Failures {
    pub(crate) fn allows(self, failed: u64, done: u64) -> bool {
        match self {
            Failures::Count(limit) => failed <= limit,
            Failures::Share(share) => failed as f64 <= share * (done + failed).max(SAMPLE) as f64,
        }
    }
}

/// What a throttle asks for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pause {
    pub(crate) time: Duration,
    pub(crate) reason: String,
}

impl Pause {
    /// Starts no batch for `time`, and asks the throttle again then. The reason is logged and shown.
    pub fn new(time: Duration, reason: impl fmt::Display) -> Self {
        Pause {
            time,
            reason: reason.to_string(),
        }
    }
}

/// How large the next batch is: one thread's, since each has rows of its own.
#[derive(Clone, Debug)]
pub(crate) struct Size {
    rows: usize,
    target: Option<Duration>,
    bounds: (usize, usize),
}

impl Size {
    pub(crate) fn new(rows: usize, target: Option<Duration>, bounds: (usize, usize)) -> Self {
        let rows = match target {
            Some(_) => rows.clamp(bounds.0, bounds.1),
            None => rows,
        };
        Size { rows, target, bounds }
    }

    pub(crate) fn rows(&self) -> usize {
        self.rows
    }

    /// Adapts to how long a batch took. At most double or half, since one slow batch proves little; one that was not full
    /// proves nothing.
    pub(crate) fn learn(&mut self, rows: usize, took: Duration) {
        let Some(target) = self.target.filter(|_| rows >= self.rows) else {
            return;
        };
        let factor = target.as_secs_f64() / took.as_secs_f64().max(1e-6);
        let rows = (self.rows as f64 * factor.clamp(0.5, 2.0)).round() as usize;
        self.rows = rows.clamp(self.bounds.0, self.bounds.1);
    }
}

#[cfg(test)]
mod tests {
    use super::{Failures, Size};
    use std::time::Duration;

    #[test]
    fn a_batch_grows_and_shrinks_towards_its_target_within_its_bounds() {
        let target = Duration::from_millis(200);
        let mut size = Size::new(500, Some(target), (100, 1500));
        size.learn(500, target / 2);
        assert_eq!(size.rows(), 1000);
        size.learn(1000, target / 100);
        assert_eq!(size.rows(), 1500, "the upper bound");
        size.learn(10, target / 100);
        assert_eq!(size.rows(), 1500, "a batch that is not full proves nothing");
        for _ in 0..9 {
            size.learn(size.rows(), target * 100);
        }
        assert_eq!(size.rows(), 100, "the lower bound");
        let mut fixed = Size::new(500, None, (1, 10));
        fixed.learn(500, target);
        assert_eq!(fixed.rows(), 500, "without a target it stays");
    }

    #[test]
    fn failures_are_limited_by_number_or_by_share() {
        assert!(Failures::Count(2).allows(2, 0) && !Failures::Count(2).allows(3, 0));
        assert!(Failures::Share(0.01).allows(10, 0) && !Failures::Share(0.01).allows(11, 0));
        assert!(Failures::Share(0.01).allows(100, 9_900) && !Failures::Share(0.01).allows(101, 9_899));
    }
}
