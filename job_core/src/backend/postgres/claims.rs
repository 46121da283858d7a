//! How jobs are claimed on PostgreSQL.

use crate::backend::row;
use crate::claim::{ClaimRequest, ClaimedJob};
use chrono::{DateTime, Utc};
use diesel::connection::LoadConnection;
use diesel::pg::Pg;
use diesel::prelude::*;
use job_db::{Database, Instant, JsonDoc, JsonText, fnv1a, statement};
use std::collections::HashMap;

const NOW: &str = Pg::NOW_SQL;

/// How long to wait for one's turn to claim, in milliseconds.
const TURN_MILLIS: u32 = 250;

statement! {
    // A loose index scan: one step per priority, however many jobs there are.
    struct Lanes<'a> on Pg { queues: &'a [String] => Array<Text> } -> (Text, Integer);
    "SELECT q.queue, l.priority FROM unnest(" queues ") WITH ORDINALITY AS q (queue, position), LATERAL (
         WITH RECURSIVE p AS (
             (SELECT priority FROM jobs_new WHERE queue = q.queue ORDER BY priority LIMIT 1)
             UNION ALL
             SELECT (SELECT n.priority FROM jobs_new n WHERE n.queue = q.queue AND n.priority > p.priority
                     ORDER BY n.priority LIMIT 1) FROM p WHERE p.priority IS NOT NULL)
         SELECT priority FROM p WHERE priority IS NOT NULL) l
     ORDER BY q.position, l.priority"
}
/// The end of a claim: what it has started, with the facts. OFFSET 0 keeps the planner from turning the look at `jobs` into a
/// join of its own choice, which might read the whole table: it stays one step in the index of the key for each row.
const STARTED: &str = " FROM d RETURNING job_id, attempts, uncharged, started_at)
     SELECT j.id, j.kind, j.args, j.max_attempts, j.unique_key, p.attempts, p.uncharged, p.started_at
     FROM p CROSS JOIN LATERAL (SELECT * FROM jobs WHERE jobs.id = p.job_id OFFSET 0) j";

statement! {
    struct Claim<'a> on Pg {
        worker: i64 => BigInt, queue: &'a str => Text, priority: i32 => Integer, after: i64 => BigInt,
        kinds: &'a [String] => Array<Text>, limit: i64 => BigInt,
    } -> (BigInt, Text, JsonDoc, Integer, Nullable<Text>, Integer, Integer, Instant);
    "WITH d AS (DELETE FROM jobs_new WHERE ctid = ANY (ARRAY (
         SELECT ctid FROM jobs_new WHERE queue = " queue " AND priority = " priority " AND job_id > " after "
             AND kind = ANY (" kinds ") AND EXISTS (SELECT 1 FROM workers WHERE id = " worker ")
         ORDER BY job_id LIMIT " limit " FOR UPDATE SKIP LOCKED)) RETURNING job_id, attempts, uncharged),
     p AS (INSERT INTO jobs_processing (job_id, worker, attempts, uncharged, started_at)
         SELECT job_id, " worker ", attempts + 1, uncharged, " {NOW} {STARTED}
}
statement! {
    // The same for the first lane that has jobs.
    struct ClaimFirst<'a> on Pg {
        worker: i64 => BigInt, queues: &'a [String] => Array<Text>, kinds: &'a [String] => Array<Text>,
        limit: i64 => BigInt,
    } -> (BigInt, Text, JsonDoc, Integer, Nullable<Text>, Integer, Integer, Instant);
    "WITH lane AS MATERIALIZED (SELECT q.queue, n.priority FROM unnest(" queues ") WITH ORDINALITY AS q (queue, position)
         CROSS JOIN LATERAL (SELECT priority FROM jobs_new WHERE queue = q.queue ORDER BY priority LIMIT 1) n
         ORDER BY q.position LIMIT 1),
     d AS (DELETE FROM jobs_new WHERE ctid = ANY (ARRAY (
         SELECT ctid FROM jobs_new WHERE queue = (SELECT queue FROM lane) AND priority = (SELECT priority FROM lane)
             AND kind = ANY (" kinds ") AND EXISTS (SELECT 1 FROM workers WHERE id = " worker ")
         ORDER BY job_id LIMIT " limit " FOR UPDATE SKIP LOCKED)) RETURNING job_id, attempts, uncharged),
     p AS (INSERT INTO jobs_processing (job_id, worker, attempts, uncharged, started_at)
         SELECT job_id, " worker ", attempts + 1, uncharged, " {NOW} {STARTED}
}
statement! {
    // As `Claim`, without the facts. What a statement that writes returns is gathered before it is sent, in a file from 4 MB
    // on: for many jobs it is cheaper to ask for the arguments apart.
    struct Move<'a> on Pg {
        worker: i64 => BigInt, queue: &'a str => Text, priority: i32 => Integer, after: i64 => BigInt,
        kinds: &'a [String] => Array<Text>, limit: i64 => BigInt,
    } -> (BigInt, Integer, Integer, Instant);
    "WITH d AS (DELETE FROM jobs_new WHERE ctid = ANY (ARRAY (
         SELECT ctid FROM jobs_new WHERE queue = " queue " AND priority = " priority " AND job_id > " after "
             AND kind = ANY (" kinds ") AND EXISTS (SELECT 1 FROM workers WHERE id = " worker ")
         ORDER BY job_id LIMIT " limit " FOR UPDATE SKIP LOCKED)) RETURNING job_id, attempts, uncharged)
     INSERT INTO jobs_processing (job_id, worker, attempts, uncharged, started_at)
     SELECT job_id, " worker ", attempts + 1, uncharged, " {NOW} " FROM d
     RETURNING job_id, attempts, uncharged, started_at"
}
statement! {
    struct Facts<'a> on Pg { ids: &'a [i64] => Array<BigInt> }
        -> (BigInt, Text, JsonDoc, Integer, Nullable<Text>);
    "SELECT id, kind, args, max_attempts, unique_key FROM jobs WHERE id = ANY (" ids ")"
}

pub(super) fn lanes<C: LoadConnection<Backend = Pg>>(
    conn: &mut C,
    queues: &[String],
) -> QueryResult<Vec<(String, i32)>> {
    Lanes { queues }.load(conn)
}

pub(super) fn claim_many<C: LoadConnection<Backend = Pg>>(
    conn: &mut C,
    request: &ClaimRequest<'_>,
) -> QueryResult<Vec<ClaimedJob>> {
    let moved: Vec<(i64, i32, i32, DateTime<Utc>)> = Move {
        worker: request.worker,
        queue: request.queue,
        priority: request.priority,
        after: request.after,
        kinds: request.kinds,
        limit: request.limit,
    }
    .load(conn)?;
    let ids: Vec<i64> = moved.iter().map(|(id, ..)| *id).collect();
    let mut moved: HashMap<i64, _> = moved
        .into_iter()
        .map(|(id, attempts, uncharged, started_at)| (id, (attempts, uncharged, started_at)))
        .collect();
    let facts: Vec<(i64, String, JsonText, i32, Option<String>)> = Facts { ids: &ids }.load(conn)?;
    let claimed = facts
        .into_iter()
        .filter_map(|(id, kind, args, max_attempts, key)| {
            let (attempts, uncharged, started_at) = moved.remove(&id)?;
            let row = (id, kind, args, max_attempts, key, attempts, uncharged, started_at);
            Some(row::claimed(request.worker, row))
        });
    Ok(claimed.collect())
}

pub(super) fn take_turn<C: LoadConnection<Backend = Pg>>(
    conn: &mut C,
    request: &ClaimRequest<'_>,
) -> QueryResult<()> {
    let lane = format!("{} {}", request.priority, request.queue);
    let number = (fnv1a(lane.into_bytes()) >> 32) as i32;
    // One that stopped in the middle of its turn, or takes long, must not hold up the others.
    conn.batch_execute(&format!(
        "SET LOCAL lock_timeout = {TURN_MILLIS}; SELECT pg_advisory_xact_lock('jobs_new'::regclass::oid::int4, '{number}')"
    ))
}

pub(super) fn claim<C: LoadConnection<Backend = Pg>>(
    conn: &mut C,
    request: &ClaimRequest<'_>,
) -> QueryResult<Vec<ClaimedJob>> {
    let claim = Claim {
        worker: request.worker,
        queue: request.queue,
        priority: request.priority,
        after: request.after,
        kinds: request.kinds,
        limit: request.limit,
    };
    Ok(row::all_claimed(request.worker, claim.load(conn)?))
}

pub(super) fn claim_first<C: LoadConnection<Backend = Pg>>(
    conn: &mut C,
    worker: i64,
    queues: &[String],
    kinds: &[String],
    limit: i64,
) -> QueryResult<Vec<ClaimedJob>> {
    let first = ClaimFirst {
        worker,
        queues,
        kinds,
        limit,
    };
    Ok(row::all_claimed(worker, first.load(conn)?))
}
