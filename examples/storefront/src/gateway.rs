use anyhow::{Context as _, bail};
use serde::{Deserialize, Serialize};
use serde_json::json;
use std::time::Duration;

/// The client of the payment service; what the worker shares with its jobs.
#[derive(Debug)]
pub(crate) struct Gateway {
    agent: ureq::Agent,
    url: String,
}

/// What the service said of a card: an answer either way, and the job's result.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Payment {
    Authorised { code: String },
    Declined { reason: String },
}

impl Gateway {
    pub(crate) fn new(url: String, timeout: Duration) -> Self {
        let config = ureq::Agent::config_builder()
            .timeout_global(Some(timeout))
            .http_status_as_error(false)
            .build();
        Gateway {
            agent: config.into(),
            url,
        }
    }

    /// Charges the card once, however often it is called with the same key. An error means that nobody knows yet
    /// whether it was charged: call again.
    pub(crate) fn charge(
        &self,
        idempotency_key: &str,
        card_token: &str,
        cents: i64,
    ) -> anyhow::Result<Payment> {
        let mut response = self
            .agent
            .post(format!("{}/charges", self.url))
            .header("Idempotency-Key", idempotency_key)
            .send_json(json!({ "card_token": card_token, "cents": cents }))
            .context("the payment service did not answer")?;
        match response.status().as_u16() {
            200 => Ok(response
                .body_mut()
                .read_json()
                .context("the payment service's answer cannot be read")?),
            422 => {
                let reason = response.body_mut().read_to_string().unwrap_or_default();
                Err(job_core::fail_for_good(format!(
                    "the payment service refused the request: {reason}"
                )))
            }
            status => bail!("the payment service answered {status}"),
        }
    }
}
