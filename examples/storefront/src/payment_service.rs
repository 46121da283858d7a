//! Plays the external service that charges cards. It has nothing in common with the shop but the HTTP between them.
//!
//! It is slow; it fails; it does not answer at all; it charges and the answer gets lost. What it does well: it charges
//! once for an `Idempotency-Key`, and gives the answer that it gave first whenever it is asked again.

use anyhow::Context as _;
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse as _, Response};
use axum::routing::post;
use axum::{Json, Router};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fs::{File, OpenOptions};
use std::io::{BufRead as _, BufReader, Write as _};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
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

/// What was decided for a key, once and for all.
#[derive(Clone, Debug, Serialize, Deserialize)]
struct Decision {
    idempotency_key: String,
    card_token: String,
    cents: i64,
    #[serde(flatten)]
    answer: Answer,
    /// How often the answer was sent, while this process lives. Without one, the card is charged and the shop does not know.
    #[serde(default)]
    times_answered: u32,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Answer {
    Authorised { code: String },
    Declined { reason: String },
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

struct Books {
    random: fastrand::Rng,
    decisions: BTreeMap<String, Decision>,
    file: File,
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
    let books = service.books();
    let charges = books
        .decisions
        .values()
        .filter(|decision| matches!(decision.answer, Answer::Authorised { .. }));
    Json(charges.cloned().collect())
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

impl Books {
    fn open(path: &Path, seed: Option<u64>) -> anyhow::Result<Self> {
        let file = OpenOptions::new()
            .create(true)
            .append(true)
            .read(true)
            .open(path)
            .with_context(|| format!("cannot open {}", path.display()))?;
        let mut decisions = BTreeMap::new();
        for line in BufReader::new(&file).lines() {
            let decision: Decision = serde_json::from_str(&line?)
                .with_context(|| format!("cannot read {}: remove it to start anew", path.display()))?;
            decisions.insert(decision.idempotency_key.clone(), decision);
        }
        Ok(Books {
            random: seed.map_or_else(fastrand::Rng::new, fastrand::Rng::with_seed),
            decisions,
            file,
        })
    }

    fn answer(&mut self, key: &str, request: &Request) -> Response {
        let response = self.decide(key, request);
        if let Some(decision) = self.decisions.get_mut(key) {
            decision.times_answered += 1;
        }
        response
    }

    /// Gives the key's answer, which is made when the key comes for the first time.
    fn decide(&mut self, key: &str, request: &Request) -> Response {
        if let Some(decision) = self.decisions.get(key) {
            if (decision.cents, &decision.card_token) != (request.cents, &request.card_token) {
                let message = "the Idempotency-Key came before with another charge";
                return (StatusCode::UNPROCESSABLE_ENTITY, message).into_response();
            }
            return Json(&decision.answer).into_response();
        }
        let answer = match request.card_token.as_str() {
            "tok_visa" | "tok_mastercard" => Answer::Authorised {
                code: format!("A{:06}", self.decisions.len() + 1),
            },
            "tok_declined" => Answer::Declined {
                reason: "insufficient funds".into(),
            },
            _ => return (StatusCode::UNPROCESSABLE_ENTITY, "unknown card token").into_response(),
        };
        let decision = Decision {
            idempotency_key: key.to_owned(),
            card_token: request.card_token.clone(),
            cents: request.cents,
            answer: answer.clone(),
            times_answered: 0,
        };
        let line = serde_json::to_string(&decision).unwrap_or_default();
        if writeln!(self.file, "{line}").is_err() {
            return StatusCode::INSUFFICIENT_STORAGE.into_response();
        }
        self.decisions.insert(key.to_owned(), decision);
        Json(answer).into_response()
    }
}
