use chrono::{DateTime, Utc};
use job_db::JsonText;
use std::time::Duration;

/// How one attempt of a job ended, as it is to be recorded.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// It succeeded; the result is JSON, or nothing where the output is `()`.
    Completed(Option<JsonText>),
    /// It succeeded, and is to be deleted with all that belongs to it.
    Discarded,
    /// It recorded its completion itself, in [`Run::transaction`](crate::Run::transaction).
    Recorded,
    /// It failed. While attempts are left, it is tried again after the delay.
    Failed {
        /// What went wrong.
        error: String,
        /// How long to wait before the next attempt.
        delay: Duration,
    },
    /// It failed for good, whatever attempts are left.
    FailedForGood(String),
    /// It asks to be performed later; the attempt is not charged.
    Snoozed(When),
    /// It ended itself as cancelled.
    Cancelled(String),
}

/// When a job is due: one that is enqueued for later, snoozed or to be tried again. By the database's clock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum When {
    /// At this time.
    At(DateTime<Utc>),
    /// So long from now.
    In(Duration),
}

/// What a job gives as its error to end otherwise than by failing: made by [`cancel`], [`snooze`], [`snooze_until`] and
/// [`fail_for_good`].
#[derive(Debug, thiserror::Error)]
pub(crate) enum End {
    #[error("cancelled: {0}")]
    Cancel(String),
    #[error("snoozed")]
    Snooze(When),
    #[error("{0}")]
    FailForGood(String),
}

/// The error by which a job ends itself as cancelled: its subject is gone, or the work is no longer wanted.
///
/// ```
/// # fn perform(order: Option<u32>) -> anyhow::Result<u32> {
/// let Some(order) = order else {
///     return Err(job_core::cancel("the order was deleted"));
/// };
/// # Ok(order) }
/// # assert_eq!(perform(None).unwrap_err().to_string(), "cancelled: the order was deleted");
/// ```
pub fn cancel(reason: impl Into<String>) -> anyhow::Error {
    End::Cancel(reason.into()).into()
}

/// The error by which a job asks to be performed again after `delay`, without charging this attempt. A job may do so
/// [`limits::MAX_UNCHARGED`](crate::limits::MAX_UNCHARGED) times; from then on it is a failure.
pub fn snooze(delay: Duration) -> anyhow::Error {
    End::Snooze(When::In(delay)).into()
}

/// The error by which a job asks to be performed again at `time`; see [`snooze`].
pub fn snooze_until(time: DateTime<Utc>) -> anyhow::Error {
    End::Snooze(When::At(time)).into()
}

/// The error by which a job fails now, whatever attempts are left: another attempt could not succeed.
pub fn fail_for_good(error: impl Into<String>) -> anyhow::Error {
    End::FailForGood(error.into()).into()
}

impl Outcome {
    /// Reads the outcome from the error that a job gave, with `delay` before the next attempt if it is a failure.
    pub fn of_error(error: &anyhow::Error, delay: Duration) -> Self {
        match error.downcast_ref::<End>() {
            Some(End::Cancel(reason)) => Outcome::Cancelled(reason.clone()),
            Some(End::Snooze(when)) => Outcome::Snoozed(*when),
            Some(End::FailForGood(text)) => Outcome::FailedForGood(text.clone()),
            None => Outcome::Failed {
                error: format!("{error:#}"),
                delay,
            },
        }
    }
}
