//! The web on diesel_async's connections to PostgreSQL: the same pages, but no thread is blocked. The worker is the same.

use super::shop::authorize_card::AuthorizeCard;
use super::shop::order::{NewOrder, Order, orders};
use super::shop::{migrate, web};
use crate::form::Purchase;
use crate::progress::Progress;
use anyhow::ensure;
use diesel::prelude::{ExpressionMethods as _, OptionalExtension as _, QueryDsl as _, SelectableHelper as _};
use diesel::result::{DatabaseErrorKind, Error, QueryResult};
use diesel_async::pooled_connection::AsyncDieselConnectionManager;
use diesel_async::pooled_connection::deadpool::Pool;
use diesel_async::{AsyncConnection as _, AsyncPgConnection, RunQueryDsl as _};
use job_core::{Job, Perform as _};
use std::net::SocketAddr;

pub(crate) fn serve(listen: SocketAddr, url: &str) -> anyhow::Result<()> {
    ensure!(
        url.starts_with("postgres"),
        "async-web is for PostgreSQL: set DATABASE_URL=postgres://…, or use web"
    );
    migrate(url)?; // by a connection that blocks, before there is anything to block
    let manager = AsyncDieselConnectionManager::<AsyncPgConnection>::new(url);
    let pool = Pool::builder(manager).max_size(8).build()?;
    crate::http::serve("the shop", listen, web::router(pool))
}

impl web::Orders for Pool<AsyncPgConnection> {
    /// A handler is dropped when its browser hangs up. Its connection goes back to the pool then, which does not hand it
    /// out again with the transaction still open.
    async fn place(&self, purchase: Purchase) -> anyhow::Result<Order> {
        let mut conn = self.get().await?;
        let placed = conn
            .transaction(async |conn| {
                let order: Order = diesel::insert_into(orders::table)
                    .values(NewOrder::of(&purchase))
                    .returning(Order::as_returning())
                    .get_result(conn)
                    .await?;
                let job = AuthorizeCard { order_id: order.id }.enqueue_async(conn).await?;
                diesel::update(orders::table.find(order.id))
                    .set(orders::job_id.eq(job.id))
                    .execute(conn)
                    .await?;
                QueryResult::Ok(order)
            })
            .await;
        match placed {
            // The same form has arrived before.
            Err(Error::DatabaseError(DatabaseErrorKind::UniqueViolation, _)) => Ok(orders::table
                .filter(orders::form_token.eq(&purchase.form_token))
                .select(Order::as_select())
                .first(&mut conn)
                .await?),
            placed => Ok(placed?),
        }
    }

    async fn find(&self, reference: String) -> anyhow::Result<Option<(Order, Progress)>> {
        let mut conn = self.get().await?;
        let order: Option<Order> = orders::table
            .filter(orders::reference.eq(&reference))
            .select(Order::as_select())
            .first(&mut conn)
            .await
            .optional()?;
        let Some(order) = order else {
            return Ok(None);
        };
        let progress = match (order.payment(), order.job_id) {
            (Some(progress), _) => progress,
            (None, Some(id)) => Progress::of_unpaid(Some(Job::find_async(&mut conn, id).await))?,
            (None, None) => Progress::of_unpaid(None)?,
        };
        Ok(Some((order, progress)))
    }
}
