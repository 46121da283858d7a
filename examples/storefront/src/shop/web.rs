use super::order::Order;
use crate::assets;
use crate::form::{OrderForm, Problem, Purchase};
use crate::http::{PageError, no_store, page};
use crate::pages::{FormPage, NotFoundPage, OrderPage};
use crate::progress::{Progress, Report};
use crate::random;
use axum::extract::{Path, State};
use axum::http::StatusCode;
use axum::response::{IntoResponse as _, Redirect, Response};
use axum::routing::{get, post};
use axum::{Form, Json, Router};

type Answer = Result<Response, PageError>;

/// The orders, for the handlers of requests: in a pool of connections that block, or of ones that are awaited.
pub(crate) trait Orders: Clone + Send + Sync + 'static {
    /// As `Order::place`.
    fn place(&self, purchase: Purchase) -> impl Future<Output = anyhow::Result<Order>> + Send;

    /// An order, and how far its payment is.
    fn find(
        &self,
        reference: String,
    ) -> impl Future<Output = anyhow::Result<Option<(Order, Progress)>>> + Send;
}

pub(crate) fn router<O: Orders>(orders: O) -> Router {
    Router::new()
        .route("/", get(order_form))
        .route(
            "/orders",
            post(place_order::<O>).get(|| async { Redirect::to("/") }),
        )
        .route("/orders/{reference}", get(show_order::<O>))
        .route("/orders/{reference}/status", get(order_status::<O>))
        .merge(assets::router())
        .fallback(not_found)
        .layer(axum::middleware::map_response(no_store))
        .with_state(orders)
}

async fn order_form() -> Answer {
    page(StatusCode::OK, &FormPage::new(OrderForm::empty(), Vec::new()))
}

/// Writes the order, enqueues its payment, and sends the browser to the order's page.
async fn place_order<O: Orders>(State(orders): State<O>, Form(form): Form<OrderForm>) -> Answer {
    let purchase = match form.check() {
        Ok(purchase) => purchase,
        Err(problems) => {
            return page(StatusCode::UNPROCESSABLE_ENTITY, &FormPage::new(form, problems));
        }
    };
    let order = orders.place(purchase.clone()).await?;
    if !order.is_for(&purchase) {
        // Somebody went back and changed what had been sent already.
        return page(
            StatusCode::CONFLICT,
            &FormPage::new(form.with_new_token(), vec![Problem::SENT_BEFORE]),
        );
    }
    Ok(Redirect::to(&format!("/orders/{}", order.reference)).into_response())
}

async fn show_order<O: Orders>(State(orders): State<O>, Path(reference): Path<String>) -> Answer {
    match find_order(orders, reference).await? {
        Some((order, progress)) => page(
            StatusCode::OK,
            &OrderPage {
                reference: &order.reference,
                product: &order.product,
                quantity: order.quantity,
                total_cents: order.total_cents,
                name: &order.name,
                report: Report::of(&progress),
            },
        ),
        None => not_found().await,
    }
}

/// What the page's script polls.
async fn order_status<O: Orders>(State(orders): State<O>, Path(reference): Path<String>) -> Answer {
    match find_order(orders, reference).await? {
        Some((_, progress)) => Ok(Json(Report::of(&progress)).into_response()),
        None => Ok(StatusCode::NOT_FOUND.into_response()),
    }
}

async fn not_found() -> Answer {
    page(StatusCode::NOT_FOUND, &NotFoundPage)
}

async fn find_order(orders: impl Orders, reference: String) -> anyhow::Result<Option<(Order, Progress)>> {
    if !random::is_token(&reference) {
        return Ok(None);
    }
    orders.find(reference).await
}
