//! Plays the external service that charges cards. It has nothing in common with the shop but the HTTP between them.
//!
//! It is slow; it fails; it does not answer at all; it charges and the answer gets lost. What it does well: it charges
//! once for an `Idempotency-Key`, and gives the answer that it gave first whenever it is asked again.

mod books;

use axum::extract::State;
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse as _, Response};
use axum::routing::post;
use axum::{Json, Router};
use books::{Books, Decision};
use serde::Deserialize;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

const HANG: Duration = Duration::from_secs(30);

#[derive(Debug, clap::Args)]
pub(crate) struct Options {
    /// Address and port; port 0 means a free one
    #[arg(long, default_value = "127.0.0.1:4000")]
    listen: SocketAddr,
    /// The shortest time for an answer
    #[arg(long, default_value_t = 50)]
    min_ms: u64,
    /// The longest time for an answer
    #[arg(long, default_value_t = 500)]
    max_ms: u64,
    /// Which part of the requests gets a 500 or a 503, from 0 to 1
    #[arg(long, default_value_t = 0.15)]
    error_rate: f64,
    /// Which part is not answered, and does nothing
    #[arg(long, default_value_t = 0.05)]
    hang_rate: f64,
    /// Which part is not answered, though the card is charged
    #[arg(long, default_value_t = 0.05)]
    drop_rate: f64,
    /// Makes the sequence of what happens the same in each run
    #[arg(long)]
    seed: Option<u64>,
    /// Keeps the answers, one JSON object a line; read at start
    #[arg(long, default_value = "storefront-charges.jsonl")]
    file: PathBuf,
}

#[derive(Debug, Deserialize)]
struct Request {
    card_token: String,
    cents: i64,
}

#[derive(Clone, Copy, Debug)]
enum Fate {
    Answer,
    Error(StatusCode),
    Hang,
    Drop,
}

struct Service {
    options: Options,
    books: Mutex<Books>,
}

pub(crate) fn serve(options: Options) -> anyhow::Result<()> {
    let address = options.listen;
    let books = Books::open(&options.file, options.seed)?;
    let service = Arc::new(Service {
        options,
        books: Mutex::new(books),
    });
    let router = Router::new()
        .route("/charges", post(charge).get(list_charges))
        .with_state(service);
    crate::http::serve("the payment service", address, router)
}

async fn list_charges(State(service): State<Arc<Service>>) -> Json<Vec<Decision>> {
    Json(service.books().charges())
}

async fn charge(
    State(service): State<Arc<Service>>,
    headers: HeaderMap,
    Json(request): Json<Request>,
) -> Response {
    let Some(key) = headers
        .get("idempotency-key")
        .and_then(|value| value.to_str().ok())
    else {
        return (StatusCode::UNPROCESSABLE_ENTITY, "no Idempotency-Key").into_response();
    };
    let (fate, delay) = service.cast_lots(&request);
    tokio::time::sleep(delay).await;
    match fate {
        Fate::Answer => service.books().answer(key, &request),
        Fate::Error(status) => status.into_response(),
        Fate::Hang => hang().await,
        Fate::Drop => {
            service.books().decide(key, &request);
            hang().await
        }
    }
}

async fn hang() -> Response {
    tokio::time::sleep(HANG).await;
    StatusCode::GATEWAY_TIMEOUT.into_response()
}

impl Service {
    fn books(&self) -> MutexGuard<'_, Books> {
        self.books.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn cast_lots(&self, request: &Request) -> (Fate, Duration) {
        let options = &self.options;
        let random = &mut self.books().random;
        let delay = random.u64(options.min_ms..=options.max_ms.max(options.min_ms));
        let error = random
            .choice([StatusCode::INTERNAL_SERVER_ERROR, StatusCode::SERVICE_UNAVAILABLE])
            .map_or(Fate::Hang, Fate::Error);
        let lot = random.f64();
        let hang_rate = options.error_rate + options.hang_rate;
        let fate = if lot < options.error_rate || request.card_token == "tok_unlucky" {
            error
        } else if lot < hang_rate {
            Fate::Hang
        } else if lot < hang_rate + options.drop_rate {
            Fate::Drop
        } else {
            Fate::Answer
        };
        (fate, Duration::from_millis(delay))
    }
}
