use super::Ticket;
use crate::backend::JobBackend;
use crate::outcome::Outcome;
use crate::{JobConnection, JobError, again, limits};
use job_db::{Database, Fault, JsonText, savepoint, transaction_depth};
use serde::Serialize;

/// The outcome of a success, of a kind that discards what has completed or of one that does not.
pub fn succeeded<C: JobConnection>(output: &impl Serialize, discards: bool) -> Outcome {
    if discards {
        Outcome::Discarded
    } else {
        completed::<C>(output)
    }
}

/// The outcome of a success: completed, or failed for good where the result cannot be kept.
pub(crate) fn completed<C: JobConnection>(output: &impl Serialize) -> Outcome {
    let json = match serde_json::to_string(output) {
        Ok(json) => json,
        Err(error) => {
            return Outcome::FailedForGood(format!("the result cannot be written as JSON: {error}"));
        }
    };
    if json.len() > limits::MAX_RESULT_BYTES {
        return Outcome::FailedForGood(format!(
            "the result is {} bytes of JSON and may be {}: keep it in a table or a file and give its key",
            json.len(),
            limits::MAX_RESULT_BYTES
        ));
    }
    if limits::json_is_too_deep(&json) {
        return Outcome::FailedForGood(format!(
            "the result is nested more than {} levels deep and could not be decoded again",
            limits::MAX_JSON_DEPTH
        ));
    }
    if limits::json_has_huge_number(&json) {
        return Outcome::FailedForGood(
            "the result holds a number with an exponent above 400, which could not be decoded again"
                .to_owned(),
        );
    }
    if !<C::Db as Database>::JSON_HOLDS_NUL && limits::json_has_nul(&json) {
        return Outcome::FailedForGood(format!(
            "the result holds the character NUL, which {} cannot read out of JSON",
            <C::Db as Database>::NAME
        ));
    }
    Outcome::Completed((json != "null").then_some(JsonText(json)))
}

/// Records many completions at once, each with its result, and gives the ids of those that were recorded, now or by an
/// earlier call whose answer was lost. The others are no longer this worker's. A job whose result the database does not
/// take ends as failed, and counts as recorded. There may be one transaction for all, or several. It is for a session at READ
/// COMMITTED, as [`claim`](crate::claim()) is.
///
/// # Errors
/// What the database says; then none of them, or some, were recorded: call again with the same.
pub fn complete_all<C: JobConnection>(
    conn: &mut C,
    worker: i64,
    completions: &[(Ticket, Option<JsonText>)],
) -> Result<Vec<i64>, JobError> {
    let completions = latest_of_each_job(worker, completions, |(ticket, _)| ticket);
    let nested = transaction_depth(conn) > 0;
    let complete = |conn: &mut C| C::Db::complete(conn, worker, &completions);
    let tried = if nested {
        savepoint(conn, complete)
    } else {
        again::run(conn, complete)
    };
    let mut recorded = match tried {
        Err(error)
            if C::Db::fault(&error) == Fault::Other
                && completions.iter().any(|(_, result)| result.is_some()) =>
        {
            complete_one_by_one(conn, &completions)?
        }
        tried => tried?,
    };
    if recorded.len() < completions.len() {
        for (ticket, _) in completions {
            if !recorded.contains(&ticket.job_id) && C::Db::was_completed_by(conn, ticket)? {
                recorded.push(ticket.job_id);
            }
        }
    }
    Ok(recorded)
}

/// Deletes many jobs that have completed, with all that belongs to them, and gives the ids of those that are gone; the others
/// are no longer this worker's. Otherwise as [`complete_all`].
///
/// # Errors
/// As [`complete_all`].
pub fn discard_all<C: JobConnection>(
    conn: &mut C,
    worker: i64,
    tickets: &[Ticket],
) -> Result<Vec<i64>, JobError> {
    let tickets = latest_of_each_job(worker, tickets, |ticket| ticket);
    let discard = |conn: &mut C| C::Db::discard(conn, worker, &tickets);
    let mut discarded = if transaction_depth(conn) > 0 {
        savepoint(conn, discard)
    } else {
        again::run(conn, discard)
    }?;
    if discarded.len() < tickets.len() {
        for ticket in tickets {
            // By an earlier call whose answer was lost.
            if !discarded.contains(&ticket.job_id) && C::Db::find(conn, ticket.job_id)?.is_none() {
                discarded.push(ticket.job_id);
            }
        }
    }
    Ok(discarded)
}

/// A completion, with the job's result.
pub(crate) type Completion = (Ticket, Option<JsonText>);

/// This worker's tickets, in the order of the jobs; of several for one job only that of the last attempt can be good.
fn latest_of_each_job<T>(worker: i64, items: &[T], ticket_of: impl Fn(&T) -> &Ticket) -> Vec<&T> {
    let mut latest: Vec<_> = items
        .iter()
        .filter(|item| ticket_of(item).worker == worker)
        .collect();
    latest.sort_by_key(|item| {
        (
            ticket_of(item).job_id,
            std::cmp::Reverse(ticket_of(item).attempts),
        )
    });
    latest.dedup_by_key(|item| ticket_of(item).job_id);
    latest
}

/// One document that the database does not take must not keep the others from being recorded.
fn complete_one_by_one<C: JobConnection>(
    conn: &mut C,
    completions: &[&Completion],
) -> Result<Vec<i64>, JobError> {
    let mut recorded = Vec::with_capacity(completions.len());
    for (ticket, result) in completions {
        match ticket.record(conn, &Outcome::Completed(result.clone())) {
            Ok(_) => recorded.push(ticket.job_id),
            Err(JobError::Lost(_)) => {}
            Err(error) => return Err(error),
        }
    }
    Ok(recorded)
}
