use super::order::Order;
use super::{Conn, Pool};
use crate::assets;
use crate::form::{OrderForm, Problem};
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

pub(crate) fn router(pool: Pool) -> Router {
    Router::new()
        .route("/", get(order_form))
        .route("/orders", post(place_order).get(|| async { Redirect::to("/") }))
        .route("/orders/{reference}", get(show_order))
        .route("/orders/{reference}/status", get(order_status))
        .merge(assets::router())
        .fallback(not_found)
        .layer(axum::middleware::map_response(no_store))
        .with_state(pool)
}

async fn order_form() -> Answer {
    page(StatusCode::OK, &FormPage::new(OrderForm::empty(), Vec::new()))
}

/// Writes the order, enqueues its payment, and sends the browser to the order's page.
async fn place_order(State(pool): State<Pool>, Form(form): Form<OrderForm>) -> Answer {
    let purchase = match form.check() {
        Ok(purchase) => purchase,
        Err(problems) => {
            return page(StatusCode::UNPROCESSABLE_ENTITY, &FormPage::new(form, problems));
        }
    };
    let (order, is_same) = with_conn(pool, move |conn| {
        let order = Order::place(conn, &purchase)?;
        let is_same = order.is_for(&purchase);
        Ok((order, is_same))
    })
    .await?;
    if !is_same {
        // Somebody went back and changed what had been sent already.
        return page(
            StatusCode::CONFLICT,
            &FormPage::new(form.with_new_token(), vec![Problem::SENT_BEFORE]),
        );
    }
    Ok(Redirect::to(&format!("/orders/{}", order.reference)).into_response())
}

async fn show_order(State(pool): State<Pool>, Path(reference): Path<String>) -> Answer {
    match find_order(pool, reference).await? {
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
async fn order_status(State(pool): State<Pool>, Path(reference): Path<String>) -> Answer {
    match find_order(pool, reference).await? {
        Some((_, progress)) => Ok(Json(Report::of(&progress)).into_response()),
        None => Ok(StatusCode::NOT_FOUND.into_response()),
    }
}

async fn not_found() -> Answer {
    page(StatusCode::NOT_FOUND, &NotFoundPage)
}

async fn find_order(pool: Pool, reference: String) -> anyhow::Result<Option<(Order, Progress)>> {
    if !random::is_token(&reference) {
        return Ok(None);
    }
    with_conn(pool, move |conn| {
        let Some(order) = Order::with_reference(conn, &reference)? else {
            return Ok(None);
        };
        let progress = order.progress(conn)?;
        Ok(Some((order, progress)))
    })
    .await
}

/// Diesel blocks its thread, so that it works on one where that does no harm.
async fn with_conn<T: Send + 'static>(
    pool: Pool,
    work: impl FnOnce(&mut Conn) -> anyhow::Result<T> + Send + 'static,
) -> anyhow::Result<T> {
    tokio::task::spawn_blocking(move || work(&mut *pool.get()?)).await?
}
