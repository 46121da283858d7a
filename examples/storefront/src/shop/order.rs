use super::Conn;
use super::authorize_card::AuthorizeCard;
use crate::form::Purchase;
use crate::gateway::Payment;
use crate::progress::Progress;
use crate::random;
use diesel::prelude::*;
use diesel::result::{DatabaseErrorKind, Error};
use job_core::{Job, JobError, Perform as _};

diesel::table! {
    orders (id) {
        id -> BigInt,
        reference -> Text,
        form_token -> Text,
        product -> Text,
        quantity -> Integer,
        total_cents -> BigInt,
        name -> Text,
        card_token -> Text,
        job_id -> Nullable<BigInt>,
        authorization_code -> Nullable<Text>,
        decline_reason -> Nullable<Text>,
    }
}

/// What somebody has bought, and what became of the payment.
#[derive(Clone, Debug, Queryable, Selectable)]
pub(crate) struct Order {
    pub(crate) id: i64,
    /// Stands in the order's URL: who knows it may see the order, so that nobody can guess it. It is the payment's
    /// idempotency key too.
    pub(crate) reference: String,
    pub(crate) product: String,
    pub(crate) quantity: i32,
    pub(crate) total_cents: i64,
    pub(crate) name: String,
    pub(crate) card_token: String,
    pub(crate) job_id: Option<i64>,
    authorization_code: Option<String>,
    decline_reason: Option<String>,
}

#[derive(Insertable)]
#[diesel(table_name = orders)]
pub(crate) struct NewOrder<'a> {
    reference: String,
    form_token: &'a str,
    product: &'a str,
    quantity: i32,
    total_cents: i64,
    name: &'a str,
    card_token: &'a str,
}

impl<'a> NewOrder<'a> {
    pub(crate) fn of(purchase: &'a Purchase) -> Self {
        NewOrder {
            reference: random::token(),
            form_token: &purchase.form_token,
            product: purchase.product.name,
            quantity: purchase.quantity,
            total_cents: purchase.total_cents(),
            name: &purchase.name,
            card_token: &purchase.card_token,
        }
    }
}

impl Order {
    /// Writes the order and enqueues its payment in one transaction: there is never the one without the other. When
    /// the same form arrives again, it gives the order that the first one made.
    pub(crate) fn place(conn: &mut Conn, purchase: &Purchase) -> QueryResult<Order> {
        let placed = conn.transaction(|conn| {
            diesel::insert_into(orders::table)
                .values(NewOrder::of(purchase))
                .execute(conn)?;
            // Not RETURNING, which MySQL does not have.
            let order = Order::with_form_token(conn, &purchase.form_token)?;
            let job = AuthorizeCard { order_id: order.id }.enqueue(conn)?;
            diesel::update(orders::table.find(order.id))
                .set(orders::job_id.eq(job.id))
                .execute(conn)?;
            Ok(order)
        });
        match placed {
            Err(Error::DatabaseError(DatabaseErrorKind::UniqueViolation, _)) => {
                Order::with_form_token(conn, &purchase.form_token)
            }
            placed => placed,
        }
    }

    fn with_form_token(conn: &mut Conn, token: &str) -> QueryResult<Order> {
        orders::table
            .filter(orders::form_token.eq(token))
            .select(Order::as_select())
            .first(conn)
    }

    pub(crate) fn find(conn: &mut Conn, id: i64) -> QueryResult<Option<Order>> {
        orders::table
            .find(id)
            .select(Order::as_select())
            .first(conn)
            .optional()
    }

    pub(crate) fn with_reference(conn: &mut Conn, reference: &str) -> QueryResult<Option<Order>> {
        orders::table
            .filter(orders::reference.eq(reference))
            .select(Order::as_select())
            .first(conn)
            .optional()
    }

    /// Whether it is the order that the purchase would make.
    pub(crate) fn is_for(&self, purchase: &Purchase) -> bool {
        (self.product.as_str(), self.quantity) == (purchase.product.name, purchase.quantity)
            && (&self.name, &self.card_token) == (&purchase.name, &purchase.card_token)
    }

    /// Writes down what the payment service said.
    pub(crate) fn record(&self, conn: &mut Conn, payment: &Payment) -> QueryResult<()> {
        let order = diesel::update(orders::table.find(self.id));
        match payment {
            Payment::Authorised { code } => order.set(orders::authorization_code.eq(code)).execute(conn)?,
            Payment::Declined { reason } => order.set(orders::decline_reason.eq(reason)).execute(conn)?,
        };
        Ok(())
    }

    /// How far the payment is: what the order says, and until it says something, what the job says.
    pub(crate) fn progress(&self, conn: &mut Conn) -> Result<Progress, JobError> {
        match self.payment() {
            Some(progress) => Ok(progress),
            None => Progress::of_unpaid(self.job_id.map(|id| Job::find(conn, id))),
        }
    }

    /// What the order says of its payment.
    pub(crate) fn payment(&self) -> Option<Progress> {
        if let Some(code) = &self.authorization_code {
            return Some(Progress::Authorised { code: code.clone() });
        }
        let reason = self.decline_reason.clone()?;
        Some(Progress::Declined { reason })
    }
}
