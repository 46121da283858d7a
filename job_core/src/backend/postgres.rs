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

#[macro_use]
mod verbs;

mod claims;
mod completions;

#[cfg(feature = "diesel_async")]
mod asynchronous;
#[cfg(feature = "listen")]
pub(super) mod listen;

portable_statements!(Pg);

/// A rescue must not wait for a worker who is completing after all, and who may wait for the rescue.
const LOCK_ORPHANS: &str = " FOR UPDATE OF p SKIP LOCKED";

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
        claims::lanes(conn, queues)
    }

    fn claim_many<C: LoadConnection<Backend = Self>>(
        conn: &mut C,
        request: &ClaimRequest<'_>,
    ) -> QueryResult<Vec<ClaimedJob>> {
        claims::claim_many(conn, request)
    }

    fn take_turn<C: LoadConnection<Backend = Self>>(
        conn: &mut C,
        request: &ClaimRequest<'_>,
    ) -> QueryResult<()> {
        claims::take_turn(conn, request)
    }

    fn claim<C: LoadConnection<Backend = Self>>(
        conn: &mut C,
        request: &ClaimRequest<'_>,
    ) -> QueryResult<Vec<ClaimedJob>> {
        claims::claim(conn, request)
    }

    fn claim_first<C: LoadConnection<Backend = Self>>(
        conn: &mut C,
        worker: i64,
        queues: &[String],
        kinds: &[String],
        limit: i64,
    ) -> QueryResult<Vec<ClaimedJob>> {
        claims::claim_first(conn, worker, queues, kinds, limit)
    }

    fn complete<C: LoadConnection<Backend = Self>>(
        conn: &mut C,
        worker: i64,
        completions: &[&Completion],
    ) -> QueryResult<Vec<i64>> {
        completions::complete(conn, worker, completions)
    }

    fn release<C: LoadConnection<Backend = Self>>(
        conn: &mut C,
        worker: i64,
        tickets: &[&Ticket],
    ) -> QueryResult<usize> {
        completions::release(conn, worker, tickets)
    }

    fn discard<C: LoadConnection<Backend = Self>>(
        conn: &mut C,
        worker: i64,
        tickets: &[&Ticket],
    ) -> QueryResult<Vec<i64>> {
        completions::discard(conn, worker, tickets)
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
