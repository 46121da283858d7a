use std::fmt;

/// Where a job is in its life. A status is a table: a job has a row in exactly one of the status tables, and a finished
/// job's row says which of the three ends it had.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Status {
    /// Due later, or waiting for a retry.
    Scheduled,
    /// May be claimed now.
    New,
    /// Claimed by a worker.
    Processing,
    /// Performed; the result is there.
    Completed,
    /// Ended by an error, for good.
    Failed,
    /// Ended by somebody's wish, the job's own included.
    Cancelled,
}

impl Status {
    /// Every status, in the order of a job's life.
    pub const ALL: [Status; 6] = [
        Status::Scheduled,
        Status::New,
        Status::Processing,
        Status::Completed,
        Status::Failed,
        Status::Cancelled,
    ];

    /// The name that people see, in lower case.
    pub const fn name(self) -> &'static str {
        match self {
            Status::Scheduled => "scheduled",
            Status::New => "new",
            Status::Processing => "processing",
            Status::Completed => "completed",
            Status::Failed => "failed",
            Status::Cancelled => "cancelled",
        }
    }

    /// Whether the job has ended.
    pub const fn is_finished(self) -> bool {
        matches!(self, Status::Completed | Status::Failed | Status::Cancelled)
    }

    /// The number by which `jobs_finished.status` and our statements know it.
    pub(crate) const fn code(self) -> i16 {
        self as i16
    }

    pub(crate) fn from_code(code: i32) -> Option<Self> {
        usize::try_from(code)
            .ok()
            .and_then(|code| Self::ALL.get(code).copied())
    }
}

impl fmt::Display for Status {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}
