use super::Conn;
use super::order::Order;
use crate::gateway::{Gateway, Payment};
use job_core::{Perform, Run, cancel};
use serde::{Deserialize, Serialize};
use std::time::Duration;

/// Has an order's card charged.
///
/// A job is performed at least once. A worker that is killed after the service has charged the card, and before it has
/// committed what the service said, leaves a job that is performed again; so is one whose request was carried out while
/// the answer got lost. Nothing on our side can tell these from a charge that never happened. So each attempt sends the
/// same **idempotency key**, the order's reference: the service charges once for a key, and from then on repeats its
/// answer. It is the order's key, not the job's, so that a second job for the same order does not charge again either.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct AuthorizeCard {
    pub(crate) order_id: i64,
}

impl Perform for AuthorizeCard {
    const KIND: &'static str = "authorize_card";
    const QUEUE: &'static str = "payments";
    type Context = Gateway;
    type Output = Payment;

    fn perform(&self, run: &Run<'_, Gateway>) -> anyhow::Result<Payment> {
        let order = run.connection(|conn: &mut Conn| Ok(Order::find(conn, self.order_id)?))?;
        let Some(order) = order else {
            return Err(cancel("the order was deleted"));
        };

        // Here the time passes; no connection is held meanwhile, and no transaction is open. A decline is an answer. No
        // answer is an error, and the job is performed again later.
        let payment = run
            .context()
            .charge(&order.reference, &order.card_token, order.total_cents)?;

        // The order is updated and the job completed in one transaction, so that neither is without the other.
        run.transaction(|conn: &mut Conn| {
            order.record(conn, &payment)?;
            Ok(payment)
        })
    }

    /// Much shorter than the default, since somebody is looking at the page.
    fn retry_delay(attempt: i32) -> Duration {
        Duration::from_millis(500 * u64::from(attempt.unsigned_abs().min(4)))
    }
}
