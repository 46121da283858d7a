use super::Request;
use anyhow::Context as _;
use axum::Json;
use axum::http::StatusCode;
use axum::response::{IntoResponse as _, Response};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fs::{File, OpenOptions};
use std::io::{BufRead as _, BufReader, Write as _};
use std::path::Path;

/// What was decided for a key, once and for all.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Decision {
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

/// What was decided, in memory and in a file; and the lots that are cast.
pub(super) struct Books {
    pub(super) random: fastrand::Rng,
    decisions: BTreeMap<String, Decision>,
    file: File,
}

impl Books {
    pub(super) fn open(path: &Path, seed: Option<u64>) -> anyhow::Result<Self> {
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

    pub(super) fn answer(&mut self, key: &str, request: &Request) -> Response {
        let response = self.decide(key, request);
        if let Some(decision) = self.decisions.get_mut(key) {
            decision.times_answered += 1;
        }
        response
    }

    /// What was charged, declines left out.
    pub(super) fn charges(&self) -> Vec<Decision> {
        let charges = self
            .decisions
            .values()
            .filter(|decision| matches!(decision.answer, Answer::Authorised { .. }));
        charges.cloned().collect()
    }

    /// Gives the key's answer, which is made when the key comes for the first time.
    pub(super) fn decide(&mut self, key: &str, request: &Request) -> Response {
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
        let line = serde_json::to_string(&decision).unwrap_or_default() + "\n";
        if self.file.write_all(line.as_bytes()).is_err() {
            return StatusCode::INSUFFICIENT_STORAGE.into_response();
        }
        self.decisions.insert(key.to_owned(), decision);
        Json(answer).into_response()
    }
}
