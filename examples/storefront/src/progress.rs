use job_core::{Job, JobError, Status};
use serde::Serialize;

/// How far an order's payment is.
#[derive(Clone, Debug)]
pub(crate) enum Progress {
    Waiting,
    Retrying { attempts: i32, error: String },
    Authorised { code: String },
    Declined { reason: String },
    Failed { reason: String },
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
                return Ok(Progress::Failed {
                    reason: "the payment was given up".into(),
                });
            }
            Some(found) => found?,
        };
        let error = job.last_error().map(str::to_owned);
        Ok(match (job.status(), error) {
            (Status::Failed | Status::Cancelled, error) => Progress::Failed {
                reason: error.unwrap_or_default(),
            },
            (_, Some(error)) => Progress::Retrying {
                attempts: job.attempts(),
                error,
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
            Progress::Retrying { attempts, error } => (
                "retrying",
                false,
                format!("Still trying (attempts so far: {attempts}). The last failure: {error}."),
            ),
            Progress::Authorised { code } => (
                "authorised",
                true,
                format!("Paid. The authorisation code is {code}."),
            ),
            Progress::Declined { reason } => ("declined", true, format!("Your card was declined: {reason}.")),
            Progress::Failed { reason } => (
                "failed",
                true,
                format!("The payment could not be made: {reason}."),
            ),
        };
        Report {
            state,
            is_final,
            message,
        }
    }
}
