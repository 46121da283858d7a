//! PostgreSQL: each verb on many jobs is one statement, with arrays for binds. `= ANY (ARRAY (subselect))` runs the
//! subselect once in every plan, which `IN` does not.

use super::{Ending, JobBackend, row};
use crate::claim::{ClaimRequest, ClaimedJob, Completion, Ticket};
use crate::new_job::{NewRow, micros};
use crate::outcome::When;
use crate::{Failure, Job, JobError, Status, WorkerRow, limits, notify};
use chrono::{DateTime, Utc};
use diesel::connection::LoadConnection;
use diesel::pg::Pg;
use diesel::prelude::*;
use diesel::sql_types::{BigInt, Text};
use job_db::fnv1a;
use std::collections::HashMap;

#[macro_use]
mod verbs;

#[cfg(feature = "diesel_async")]
mod asynchronous;
#[cfg(feature = "listen")]
pub(super) mod listen;

portable_statements!(Pg);

/// A rescue must not wait for a worker who is completing after all, and who may wait for the rescue.
const LOCK_ORPHANS: &str = " FOR UPDATE OF p SKIP LOCKED";

/// How long to wait for one's turn to claim, in milliseconds.
const TURN_MILLIS: u32 = 250;

/// The channel on which workers are woken; it carries no data.
const WAKE: &str = "pg_notify('gatun', '')";

statement! {
    // The condition is always true: a CTE that only notifies would be left out, since nobody reads it, and a column would
    // be sent. pg_notify is volatile and gives '', so that it runs once for the one row.
    struct EnqueuePlain<'a> on Pg {
        kind: &'a str => Text, queue: &'a str => Text, priority: i32 => Integer, max_attempts: i32 => Integer,
        args: &'a JsonText => JsonDoc, wake: bool => Bool,
    } -> (BigInt, Instant);
    "WITH j AS (INSERT INTO jobs (kind, queue, priority, max_attempts, args, created_at)
         VALUES (" kind ", " queue ", " priority ", " max_attempts ", " args ", " {NOW} ") RETURNING id, created_at),
     n AS (INSERT INTO jobs_new (queue, priority, job_id, kind, attempts, uncharged)
         SELECT " queue ", " priority ", id, " kind ", 0, 0 FROM j)
     SELECT id, created_at FROM j WHERE CASE WHEN " wake " THEN " {WAKE} "::text = '' ELSE true END"
}
statement! {
    // The common bulk: all alike but for their arguments, without keys and times. The ids are drawn in the order of the
    // arguments, since an INSERT takes up rows in the order in which its one scan gives them.
    struct EnqueueAlike<'a> on Pg {
        kind: &'a str => Text, queue: &'a str => Text, priority: i32 => Integer, max_attempts: i32 => Integer,
        args: Vec<&'a JsonText> => Array<JsonDoc>, wake: bool => Bool,
    } -> BigInt;
    "WITH j AS (INSERT INTO jobs (kind, queue, priority, max_attempts, args, created_at)
         SELECT " kind ", " queue ", " priority ", " max_attempts ", args, " {NOW} " FROM unnest(" args ") AS i (args)
         RETURNING id),
     n AS (INSERT INTO jobs_new (queue, priority, job_id, kind, attempts, uncharged)
         SELECT " queue ", " priority ", id, " kind ", 0, 0 FROM j),
     w AS MATERIALIZED (SELECT CASE WHEN " wake " THEN " {WAKE} "::text END AS woken)
     SELECT id FROM j, w"
}
statement! {
    // The sequence may have another name than usual, where the app has one of that name.
    // The order of the keys keeps two bulks with the same keys from waiting for each other.
    struct EnqueueMany<'a> on Pg {
        kinds: Vec<&'a str> => Array<Text>, queues: Vec<&'a str> => Array<Text>, priorities: Vec<i32> => Array<Integer>,
        max_attempts: Vec<i32> => Array<Integer>, args: Vec<&'a JsonText> => Array<JsonDoc>,
        keys: Vec<Option<&'a str>> => Array<Nullable<Text>>,
        run_ats: Vec<Option<DateTime<Utc>>> => Array<Nullable<Instant>>,
        run_ins: Vec<Option<i64>> => Array<Nullable<BigInt>>, wake: bool => Bool,
    } -> (BigInt, BigInt);
    "WITH input AS MATERIALIZED (
         SELECT nextval((SELECT pg_get_serial_sequence('jobs', 'id'))::regclass) AS id, position - 1 AS position, kind, queue, priority, max_attempts, args,
                unique_key, coalesce(run_at, " {AFTER} "run_in" {MICROS} ") AS run_at
         FROM unnest(" kinds ", " queues ", " priorities ", " max_attempts ", " args ", " keys ", " run_ats ", "
              run_ins ") WITH ORDINALITY
              AS i (kind, queue, priority, max_attempts, args, unique_key, run_at, run_in, position)),
     k AS (INSERT INTO unique_keys (unique_key, job_id)
         SELECT unique_key, id FROM input WHERE unique_key IS NOT NULL ORDER BY unique_key, id
         ON CONFLICT DO NOTHING RETURNING job_id),
     free AS (SELECT * FROM input WHERE unique_key IS NULL OR id IN (SELECT job_id FROM k)),
     j AS (INSERT INTO jobs (id, kind, queue, priority, max_attempts, args, unique_key, created_at)
         SELECT id, kind, queue, priority, max_attempts, args, unique_key, " {NOW} " FROM free),
     n AS (INSERT INTO jobs_new (queue, priority, job_id, kind, attempts, uncharged)
         SELECT queue, priority, id, kind, 0, 0 FROM free WHERE run_at IS NULL OR run_at <= " {NOW} "),
     s AS (INSERT INTO jobs_scheduled (run_at, job_id, attempts, uncharged)
         SELECT run_at, id, 0, 0 FROM free WHERE run_at > " {NOW} "),
     w AS MATERIALIZED (SELECT CASE WHEN " wake " THEN " {WAKE} "::text END AS woken)
     SELECT position, id FROM free, w"
}
impl<'a> EnqueueMany<'a> {
    fn of(rows: &[&'a NewRow]) -> Self {
        EnqueueMany {
            kinds: rows.iter().map(|row| row.kind).collect(),
            queues: rows.iter().map(|row| row.queue.as_str()).collect(),
            priorities: rows.iter().map(|row| row.priority).collect(),
            max_attempts: rows.iter().map(|row| row.max_attempts).collect(),
            args: rows.iter().map(|row| &row.args).collect(),
            keys: rows.iter().map(|row| row.unique_key.as_deref()).collect(),
            run_ats: rows
                .iter()
                .map(|row| match row.when {
                    Some(When::At(time)) => Some(time),
                    _ => None,
                })
                .collect(),
            run_ins: rows
                .iter()
                .map(|row| match row.when {
                    Some(When::In(delay)) => Some(micros(delay)),
                    _ => None,
                })
                .collect(),
            wake: notify::due(),
        }
    }
}

statement! {
    struct KeyHolder<'a> on Pg { key: &'a str => Text } -> BigInt;
    "SELECT job_id FROM unique_keys WHERE unique_key = " key
}
statement! {
    struct TakeKey<'a> on Pg { key: &'a str => Text, job_id: i64 => BigInt } -> ();
    "INSERT INTO unique_keys (unique_key, job_id) VALUES (" key ", " job_id ") ON CONFLICT DO NOTHING"
}
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
    struct ReadJson<'a> on Pg { json: &'a JsonText => JsonDoc } -> Bool;
    "SELECT " json " IS NOT NULL"
}
statement! {
    // OFFSET 0 as in `STARTED`.
    struct Promote on Pg { limit: i64 => BigInt } -> ();
    "WITH d AS (DELETE FROM jobs_scheduled WHERE ctid = ANY (ARRAY (
         SELECT ctid FROM jobs_scheduled WHERE run_at <= " {NOW} " ORDER BY run_at, job_id LIMIT " limit "
         FOR UPDATE SKIP LOCKED)) RETURNING job_id, attempts, uncharged)
     INSERT INTO jobs_new (queue, priority, job_id, kind, attempts, uncharged)
     SELECT j.queue, j.priority, j.id, j.kind, d.attempts, d.uncharged
     FROM d CROSS JOIN LATERAL (SELECT * FROM jobs WHERE jobs.id = d.job_id OFFSET 0) j"
}
statement! {
    struct DeleteFacts<'a> on Pg { ids: &'a [i64] => Array<BigInt> } -> ();
    "WITH f AS (DELETE FROM job_failures WHERE job_id = ANY (" ids "))
     DELETE FROM jobs WHERE id = ANY (" ids ")"
}
statement! {
    struct DeleteAllFinished<'a> on Pg { ids: &'a [i64] => Array<BigInt> } -> BigInt;
    "WITH l AS MATERIALIZED (SELECT f.job_id FROM jobs_finished f JOIN jobs j ON j.id = f.job_id
         WHERE f.job_id = ANY (" ids ") FOR UPDATE SKIP LOCKED),
     s AS (DELETE FROM jobs_finished WHERE job_id = ANY (ARRAY (SELECT job_id FROM l)) RETURNING job_id),
     f AS (DELETE FROM job_failures WHERE job_id = ANY (ARRAY (SELECT job_id FROM s)))
     DELETE FROM jobs WHERE id = ANY (ARRAY (SELECT job_id FROM s)) RETURNING id"
}
statement! {
    struct Notify on Pg {} -> Text;
    "SELECT " {WAKE} "::text"
}

impl<'a> EnqueueAlike<'a> {
    /// Where the rows differ in their arguments only, and have neither keys nor times.
    fn of(rows: &[&'a NewRow]) -> Option<Self> {
        let &first = rows.first()?;
        let facts = |row: &NewRow| (row.kind, row.priority, row.max_attempts);
        let is_alike = |row: &&NewRow| {
            let is_plain = row.unique_key.is_none() && row.when.is_none();
            is_plain && facts(row) == facts(first) && row.queue == first.queue
        };
        rows.iter().all(is_alike).then(|| EnqueueAlike {
            kind: first.kind,
            queue: &first.queue,
            priority: first.priority,
            max_attempts: first.max_attempts,
            args: rows.iter().map(|row| &row.args).collect(),
            wake: notify::due(),
        })
    }
}

impl JobBackend for Pg {
    const ENQUEUES_IN_ONE_STATEMENT: bool = true;
    const MAX_ROWS_PER_STATEMENT: usize = 100_000;
    const MAX_BYTES_PER_STATEMENT: usize = 64 << 20;
    const CAN_NOTIFY: bool = true;
    const CLAIMS_IN_TURN: bool = true;

    portable_methods!();
    postgres_verbs!();

    fn lanes<C: LoadConnection<Backend = Self>>(
        conn: &mut C,
        queues: &[String],
    ) -> QueryResult<Vec<(String, i32)>> {
        Lanes { queues }.load(conn)
    }

    fn claim_many<C: LoadConnection<Backend = Self>>(
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

    fn take_turn<C: LoadConnection<Backend = Self>>(
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

    fn claim<C: LoadConnection<Backend = Self>>(
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

    fn claim_first<C: LoadConnection<Backend = Self>>(
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

    fn complete<C: LoadConnection<Backend = Self>>(
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

    fn discard<C: LoadConnection<Backend = Self>>(
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

    fn read_json<C: LoadConnection<Backend = Self>>(conn: &mut C, json: &JsonText) -> QueryResult<()> {
        ReadJson { json }.get_result::<bool>(conn).map(|_| ())
    }

    fn promote<C: LoadConnection<Backend = Self>>(conn: &mut C, limit: i64) -> QueryResult<usize> {
        Promote { limit }.execute(conn)
    }

    fn delete_finished<C: LoadConnection<Backend = Self>>(conn: &mut C, ids: &[i64]) -> QueryResult<usize> {
        Ok(DeleteAllFinished { ids }.load::<i64>(conn)?.len())
    }
}
