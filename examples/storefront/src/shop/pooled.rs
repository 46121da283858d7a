use super::order::Order;
use super::web::Orders;
use super::{Conn, Pool};
use crate::form::Purchase;
use crate::progress::Progress;

impl Orders for Pool {
    async fn place(&self, purchase: Purchase) -> anyhow::Result<Order> {
        with_conn(self, move |conn| Ok(Order::place(conn, &purchase)?)).await
    }

    async fn find(&self, reference: String) -> anyhow::Result<Option<(Order, Progress)>> {
        with_conn(self, move |conn| {
            let Some(order) = Order::with_reference(conn, &reference)? else {
                return Ok(None);
            };
            let progress = order.progress(conn)?;
            Ok(Some((order, progress)))
        })
        .await
    }
}

/// Diesel blocks its thread, so that it works on one where that does no harm.
async fn with_conn<T: Send + 'static>(
    pool: &Pool,
    work: impl FnOnce(&mut Conn) -> anyhow::Result<T> + Send + 'static,
) -> anyhow::Result<T> {
    let pool = pool.clone();
    tokio::task::spawn_blocking(move || work(&mut *pool.get()?)).await?
}
