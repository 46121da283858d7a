use job_core::{Job, JobError, Status};
use serde::Serialize;

/// How far an order's payment is.
#[derive(Clone, Debug)]
pub(crate) enum Progress {
    Waiting,
    Retrying { attempts: i32 },
    Authorised { code: String },
    Declined { reason: String },
    Failed,
}

/// What the order's page and its script are told.
#[derive(Debug, Serialize)]
pub(crate) struct Report {
    pub(crate) state: &'static str,
    pub(crate) is_final: bool,
    pub(crate) message: String,
}

impl Progress {
    /// What the look at its job says while the order has no payment.
    pub(crate) fn of_unpaid(job: Option<Result<Job, JobError>>) -> Result<Self, JobError> {
        // Finished jobs are pruned after some days: a failed one is known by the order that has no payment.
        let job = match job {
            Some(Err(JobError::NotFound(_))) | None => {
                return Ok(Progress::Failed);
            }
            Some(found) => found?,
        };
        // Why it failed is in `last_error()`, which is for the shop's people and not for its customers.
        Ok(match (job.status(), job.last_error()) {
            (Status::Failed | Status::Cancelled, _) => Progress::Failed,
            (_, Some(_)) => Progress::Retrying {
                attempts: job.attempts(),
            },
            (_, None) => Progress::Waiting,
        })
    }
}

impl Report {
    pub(crate) fn of(progress: &Progress) -> Self {
        let (state, is_final, message) = match progress {
            Progress::Waiting => (
                "waiting",
                false,
                "We are asking your bank. This takes a moment.".into(),
            ),
            Progress::Retrying { attempts } => (
                "retrying",
                false,
                format!("We could not reach your bank, and are still trying (attempts so far: {attempts})."),
            ),
            Progress::Authorised { code } => (
                "authorised",
                true,
                format!("Paid. The authorisation code is {code}."),
            ),
            Progress::Declined { reason } => ("declined", true, format!("Your card was declined: {reason}.")),
            Progress::Failed => (
                "failed",
                true,
                "The payment could not be completed. Please get in touch with us.".into(),
            ),
        };
        Report {
            state,
            is_final,
            message,
        }
    }
}
