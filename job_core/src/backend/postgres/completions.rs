//! How completed jobs are recorded, or discarded, and others handed back, on PostgreSQL.

use crate::claim::{Completion, Ticket};
use diesel::connection::LoadConnection;
use diesel::pg::Pg;
use diesel::prelude::*;
use job_db::{Database, JsonDoc, JsonText, statement};

const NOW: &str = Pg::NOW_SQL;

statement! {
    // The common case: no results, no keys, all in the same attempt.
    struct CompletePlain<'a> on Pg {
        ids: &'a [i64] => Array<BigInt>, worker: i64 => BigInt, attempts: i32 => Integer,
    } -> BigInt;
    "WITH d AS (DELETE FROM jobs_processing
         WHERE job_id = ANY (" ids ") AND worker = " worker " AND attempts = " attempts " RETURNING *)
     INSERT INTO jobs_finished (job_id, status, attempts, uncharged, started_at, finished_at, worker)
     SELECT job_id, 3, attempts, uncharged, started_at, " {NOW} ", worker FROM d RETURNING job_id"
}
statement! {
    struct CompleteFull<'a> on Pg {
        ids: &'a [i64] => Array<BigInt>, results: Vec<Option<&'a JsonText>> => Array<Nullable<JsonDoc>>,
        worker: i64 => BigInt, attempts: i32 => Integer,
    } -> BigInt;
    "WITH d AS (DELETE FROM jobs_processing
         WHERE job_id = ANY (" ids ") AND worker = " worker " AND attempts = " attempts " RETURNING *),
     k AS (DELETE FROM unique_keys WHERE job_id = ANY (ARRAY (SELECT job_id FROM d)))
     INSERT INTO jobs_finished (job_id, status, attempts, uncharged, started_at, finished_at, worker, result)
     SELECT d.job_id, 3, attempts, uncharged, started_at, " {NOW} ", worker, r.result
     FROM d JOIN unnest(" ids ", " results ") AS r (job_id, result) ON r.job_id = d.job_id RETURNING job_id"
}
statement! {
    // As `CompletePlain`; in the first attempt there are no failures.
    struct DiscardPlain<'a> on Pg {
        ids: &'a [i64] => Array<BigInt>, worker: i64 => BigInt, attempts: i32 => Integer,
    } -> BigInt;
    "WITH d AS (DELETE FROM jobs_processing
         WHERE job_id = ANY (" ids ") AND worker = " worker " AND attempts = " attempts " RETURNING job_id)
     DELETE FROM jobs WHERE id = ANY (ARRAY (SELECT job_id FROM d)) RETURNING id"
}
statement! {
    struct DiscardFull<'a> on Pg {
        ids: &'a [i64] => Array<BigInt>, worker: i64 => BigInt, attempts: i32 => Integer,
    } -> BigInt;
    "WITH d AS (DELETE FROM jobs_processing
         WHERE job_id = ANY (" ids ") AND worker = " worker " AND attempts = " attempts " RETURNING job_id),
     k AS (DELETE FROM unique_keys WHERE job_id = ANY (ARRAY (SELECT job_id FROM d))),
     f AS (DELETE FROM job_failures WHERE job_id = ANY (ARRAY (SELECT job_id FROM d)))
     DELETE FROM jobs WHERE id = ANY (ARRAY (SELECT job_id FROM d)) RETURNING id"
}

statement! {
    // OFFSET 0 as in a claim.
    struct Release<'a> on Pg { ids: &'a [i64] => Array<BigInt>, worker: i64 => BigInt, attempts: i32 => Integer } -> ();
    "WITH d AS (DELETE FROM jobs_processing
         WHERE job_id = ANY (" ids ") AND worker = " worker " AND attempts = " attempts " RETURNING *)
     INSERT INTO jobs_new (queue, priority, job_id, kind, attempts, uncharged)
     SELECT j.queue, j.priority, j.id, j.kind, d.attempts, d.uncharged + 1
     FROM d CROSS JOIN LATERAL (SELECT * FROM jobs WHERE jobs.id = d.job_id OFFSET 0) j"
}

pub(super) fn complete<C: LoadConnection<Backend = Pg>>(
    conn: &mut C,
    worker: i64,
    completions: &[&Completion],
) -> QueryResult<Vec<i64>> {
    // One statement per number of attempts, which is the fence; nearly always there is but one.
    let mut order = completions.to_vec();
    order.sort_by_key(|(ticket, _)| (ticket.attempts, ticket.job_id));
    let mut recorded = Vec::with_capacity(order.len());
    for group in order.chunk_by(|a, b| a.0.attempts == b.0.attempts) {
        let attempts = group[0].0.attempts;
        let ids: Vec<i64> = group.iter().map(|(ticket, _)| ticket.job_id).collect();
        let plain = group
            .iter()
            .all(|(ticket, result)| result.is_none() && !ticket.unique);
        let done: Vec<i64> = if plain {
            CompletePlain {
                ids: &ids,
                worker,
                attempts,
            }
            .load(conn)?
        } else {
            CompleteFull {
                ids: &ids,
                results: group.iter().map(|(_, result)| result.as_ref()).collect(),
                worker,
                attempts,
            }
            .load(conn)?
        };
        recorded.extend(done);
    }
    Ok(recorded)
}

pub(super) fn discard<C: LoadConnection<Backend = Pg>>(
    conn: &mut C,
    worker: i64,
    tickets: &[&Ticket],
) -> QueryResult<Vec<i64>> {
    let mut order = tickets.to_vec();
    order.sort_by_key(|ticket| (ticket.attempts, ticket.job_id));
    let mut discarded = Vec::with_capacity(order.len());
    for group in order.chunk_by(|a, b| a.attempts == b.attempts) {
        let attempts = group[0].attempts;
        let ids = &*group.iter().map(|ticket| ticket.job_id).collect::<Vec<_>>();
        let plain = attempts == 1 && group.iter().all(|ticket| !ticket.unique);
        let done: Vec<i64> = if plain {
            DiscardPlain {
                ids,
                worker,
                attempts,
            }
            .load(conn)?
        } else {
            DiscardFull {
                ids,
                worker,
                attempts,
            }
            .load(conn)?
        };
        discarded.extend(done);
    }
    Ok(discarded)
}

pub(super) fn release<C: LoadConnection<Backend = Pg>>(
    conn: &mut C,
    worker: i64,
    tickets: &[&Ticket],
) -> QueryResult<usize> {
    let mut order = tickets.to_vec();
    order.sort_by_key(|ticket| (ticket.attempts, ticket.job_id));
    let mut released = 0;
    for group in order.chunk_by(|a, b| a.attempts == b.attempts) {
        let release = Release {
            ids: &group.iter().map(|ticket| ticket.job_id).collect::<Vec<_>>(),
            worker,
            attempts: group[0].attempts,
        };
        released += release.execute(conn)?;
    }
    Ok(released)
}
