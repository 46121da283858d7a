use crate::verbs::blocking::look;
use crate::{Job, JobConnection, JobError, Status};
use std::fmt;

/// How many jobs are in each status.
#[derive(Clone, Copy, Default, PartialEq, Eq)]
pub struct Counts {
    counts: [i64; Status::ALL.len()],
}

impl Counts {
    /// How many are in this status.
    pub fn of(&self, status: Status) -> i64 {
        self.counts[status as usize]
    }

    /// How many have not ended: scheduled, new or processing.
    pub fn unfinished(&self) -> i64 {
        Status::ALL
            .into_iter()
            .filter(|status| !status.is_finished())
            .map(|status| self.of(status))
            .sum()
    }

    /// How many there are in all.
    pub fn total(&self) -> i64 {
        self.counts.iter().sum()
    }

    /// From (status code, number), a status once or several times.
    pub(crate) fn of_rows(rows: Vec<(i32, i64)>) -> Self {
        let mut counts = Counts::default();
        for (code, count) in rows {
            if let Some(status) = Status::from_code(code) {
                counts.counts[status as usize] += count;
            }
        }
        counts
    }
}

impl fmt::Debug for Counts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_map()
            .entries(
                Status::ALL
                    .into_iter()
                    .map(|status| (status.name(), self.of(status))),
            )
            .finish()
    }
}

impl Job {
    /// Counts all jobs by status. It reads every row of the status tables: for people, not for a hot path.
    ///
    /// # Errors
    /// What the database says.
    pub fn counts<C: JobConnection>(conn: &mut C) -> Result<Counts, JobError> {
        look::counts(conn)
    }

    /// Counts the jobs of one queue by status.
    ///
    /// # Errors
    /// What the database says.
    pub fn counts_in<C: JobConnection>(conn: &mut C, queue: &str) -> Result<Counts, JobError> {
        look::counts_in(conn, queue)
    }
}
