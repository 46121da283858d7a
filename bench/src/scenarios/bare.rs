//! The same statements without a worker around them: what there is to reach.

use crate::contender::rate_of_many;
use crate::contenders::gatun;
use crate::server::Place;
use crate::{clock, proc};
use anyhow::{Context, Result};
use diesel::pg::Pg;
use diesel::prelude::*;
use job_core::{ClaimRequest, JsonText, WorkerRow, claim, complete_all, lanes};
use job_db::{Database, JsonDoc, statement};
use serde_json::{Value, json};
use std::time::Duration;

/// The batch of the bare loop; the worker's own batches are at most twice as large.
const BATCH: i64 = 500;

statement! {
    /// The two rows of a job.
    pub struct InsertOne<'a> on Pg { kind: &'a str => Text, queue: &'a str => Text, args: &'a JsonText => JsonDoc } -> BigInt;
    "WITH j AS (INSERT INTO jobs (kind, queue, priority, max_attempts, args)
         VALUES (" kind ", " queue ", 0, 12, " args ") RETURNING id),
     n AS (INSERT INTO jobs_new (queue, priority, job_id, kind, attempts, uncharged)
         SELECT " queue ", 0, id, " kind ", 0, 0 FROM j)
     SELECT id FROM j"
}

statement! {
    /// The two rows of each of many jobs.
    pub struct InsertMany<'a> on Pg {
        kinds: &'a [&'a str] => Array<Text>, queues: &'a [&'a str] => Array<Text>,
        priorities: &'a [i32] => Array<Integer>, max_attempts: &'a [i32] => Array<Integer>,
        args: &'a [JsonText] => Array<JsonDoc>,
    } -> BigInt;
    "WITH j AS (INSERT INTO jobs (kind, queue, priority, max_attempts, args)
         SELECT * FROM unnest(" kinds ", " queues ", " priorities ", " max_attempts ", " args ")
         RETURNING id, queue, priority, kind)
     INSERT INTO jobs_new (queue, priority, job_id, kind, attempts, uncharged)
     SELECT queue, priority, id, kind, 0, 0 FROM j RETURNING job_id"
}

/// Claims and completes, one statement after the other on one connection, until there is nothing left.
pub fn drain(place: &Place) -> Result<Value> {
    let (cpu, began) = (proc::cpu("self")?, clock::now());
    let conn = &mut place.connect()?;
    Pg::prepare_session(conn, Duration::from_secs(30))?;
    let queues = ["default".to_owned()];
    let kinds = ["nothing".to_owned()];
    let worker = WorkerRow::register(conn, &queues, &kinds)?.id;
    let (queue, priority) = lanes(conn, &queues)?.into_iter().next().context("no jobs")?;
    let mut after = 0;
    let mut jobs = 0;
    loop {
        let request = ClaimRequest {
            worker,
            queue: &queue,
            priority,
            after,
            kinds: &kinds,
            limit: BATCH,
        };
        let claimed = claim(conn, &request)?;
        let Some(last) = claimed.last() else { break };
        after = last.ticket.job_id;
        jobs += claimed.len();
        let completions: Vec<_> = claimed.into_iter().map(|job| (job.ticket, None)).collect();
        complete_all(conn, worker, &completions)?;
    }
    Ok(json!({
        "jobs": jobs,
        "seconds": clock::seconds(began, clock::now()),
        "cpu_us": proc::cpu("self")? - cpu,
        "peak_kib": proc::peak_kib(),
    }))
}

/// Inserts jobs one by one on each of several connections at once.
pub fn single(place: &Place, number: usize, connections: usize) -> Result<Value> {
    rate_of_many(connections, number, || {
        let mut conn = place.connect()?;
        Ok(move || -> Result<()> {
            let args = arguments();
            for _ in 0..number {
                let _id: i64 = InsertOne {
                    kind: "nothing",
                    queue: "default",
                    args: &args,
                }
                .get_result(&mut conn)?;
            }
            Ok(())
        })
    })
}

/// Inserts jobs `batch` at a time.
pub fn bulk(place: &Place, number: usize, batch: usize) -> Result<Value> {
    let conn = &mut place.connect()?;
    let began = clock::now();
    for at in (0..number).step_by(batch) {
        let rows = number.min(at + batch) - at;
        let ids: Vec<i64> = InsertMany {
            kinds: &vec!["nothing"; rows],
            queues: &vec!["default"; rows],
            priorities: &vec![0; rows],
            max_attempts: &vec![12; rows],
            args: &vec![arguments(); rows],
        }
        .load(conn)?;
        anyhow::ensure!(ids.len() == rows);
    }
    Ok(json!({ "jobs": number, "seconds": clock::seconds(began, clock::now()) }))
}

fn arguments() -> JsonText {
    JsonText(json!({ "padding": "x".repeat(86) }).to_string())
}

/// Makes the tables.
pub fn set_up(place: &Place) -> Result<()> {
    gatun().call(&place.url, &["setup"]).map(|_| ())
}
