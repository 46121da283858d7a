use crate::KeyValue;
use std::fmt;
use std::time::Duration;

/// How a run ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use = "a run may have left rows undone"]
pub enum Outcome {
    /// At the last look over the whole table, which came after every partition had been drained under its lock, no row
    /// was pending.
    Complete {
        /// How many rows this run has done; others may have done the rest.
        rows: u64,
    },
    /// Rows are pending still.
    Incomplete {
        /// Partitions that somebody else held, or some of whose rows, for as long as `patience` says.
        busy: usize,
        /// Rows that failed, see [`Report::failures`].
        failed: usize,
    },
    /// [`Control::stop`](crate::Control::stop) was called.
    Stopped,
}

/// A row that the closure failed on, alone in its batch; or one that it committed outside of the batch's transaction.
#[derive(Clone, Debug)]
pub struct FailedRow {
    /// Its key.
    pub key: KeyValue,
    /// What the closure said, with its causes.
    pub error: String,
}

/// What a run did.
#[derive(Clone, Debug)]
#[must_use = "a run may have left rows undone"]
pub struct Report {
    /// The table.
    pub table: String,
    /// How the run ended.
    pub outcome: Outcome,
    /// The rows that it has done. (Where the connection was lost during a COMMIT that came through, that batch's rows are
    /// done and not counted.)
    pub rows: u64,
    /// The rows that failed. They are as they were, unless the closure has ended its transaction: then their errors say so, and
    /// whether they are pending no more.
    pub failures: Vec<FailedRow>,
    /// The number of partitions.
    pub partitions: usize,
    /// Transactions that committed rows.
    pub batches: u64,
    /// Attempts that were begun again after a lost connection, a deadlock or the like.
    pub retries: u64,
    /// How long it took.
    pub elapsed: Duration,
}

impl Report {
    /// Whether nothing is left to do.
    pub fn is_complete(&self) -> bool {
        matches!(self.outcome, Outcome::Complete { .. })
    }

    /// Rows per second, by this run alone.
    pub fn rate(&self) -> f64 {
        self.rows as f64 / self.elapsed.as_secs_f64().max(1e-9)
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let outcome = match self.outcome {
            Outcome::Complete { .. } => "complete".to_owned(),
            Outcome::Incomplete { busy: 0, .. } => "incomplete".to_owned(),
            Outcome::Incomplete { busy, .. } => format!("incomplete, {busy} partitions busy"),
            Outcome::Stopped => "stopped".to_owned(),
        };
        write!(
            f,
            "{}: {outcome}; {} rows done in {:.1} s ({:.0}/s), {} batches, {} partitions, {} retries, {} failed",
            self.table,
            self.rows,
            self.elapsed.as_secs_f64(),
            self.rate(),
            self.batches,
            self.partitions,
            self.retries,
            self.failures.len(),
        )?;
        for row in self.failures.iter().take(10) {
            write!(f, "\n  row {}: {}", row.key, row.error)?;
        }
        match self.failures.len().saturating_sub(10) {
            0 => Ok(()),
            more => write!(f, "\n  and {more} more"),
        }
    }
}
