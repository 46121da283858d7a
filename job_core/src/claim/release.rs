use super::Ticket;
use crate::backend::JobBackend;
use crate::{JobConnection, JobError, again};
use std::cmp::Reverse;

/// Hands jobs back unstarted, uncharged, and gives how many were still ours.
///
/// # Errors
/// What the database says; then none was handed back.
pub fn release_all<C: JobConnection>(conn: &mut C, tickets: &[Ticket]) -> Result<usize, JobError> {
    if tickets.is_empty() {
        return Ok(0);
    }
    // All lock rows in the order of the jobs, so that they do not wait for each other in a circle.
    let mut tickets: Vec<&Ticket> = tickets.iter().collect();
    tickets.sort_unstable_by_key(|ticket| (ticket.worker, ticket.job_id, Reverse(ticket.attempts)));
    // Of two tickets for a job the older one is worth nothing.
    tickets.dedup_by_key(|ticket| (ticket.worker, ticket.job_id));
    let released = again::write_transaction(conn, |conn| {
        let mut released = 0;
        // Nearly always all are of one worker's id; after it was declared dead it has another.
        for ours in tickets.chunk_by(|a, b| a.worker == b.worker) {
            released += C::Db::release(conn, ours[0].worker, ours)?;
        }
        diesel::QueryResult::Ok(released)
    })?;
    if released > 0 {
        crate::notify::wake(conn);
    }
    Ok(released)
}
