use super::Ticket;
use crate::backend::JobBackend;
use crate::{JobConnection, JobError, again};

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
    tickets.sort_unstable_by_key(|ticket| ticket.job_id);
    let released = again::write_transaction(conn, |conn| {
        let mut released = 0;
        for ticket in &tickets {
            if C::Db::delete_processing(conn, ticket)? == 1 {
                C::Db::insert_new(conn, ticket.job_id, ticket.attempts, ticket.uncharged + 1)?;
                released += 1;
            }
        }
        diesel::QueryResult::Ok(released)
    })?;
    if released > 0 {
        crate::notify::wake(conn);
    }
    Ok(released)
}
