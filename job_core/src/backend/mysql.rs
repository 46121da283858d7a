//! MySQL and MariaDB: sets of rows travel as one JSON text, which JSON_TABLE makes a table of, and are joined by primary
//! key. `DELETE … WHERE … IN (…)` may be planned as a scan, which locks other workers' rows and deadlocks.

use super::row_by_row::{InsertAllNew, InsertJobs};
use super::{Ending, JobBackend, row};
use crate::claim::{ClaimRequest, ClaimedJob, Completion, Ticket};
use crate::new_job::{NewRow, micros};
use crate::outcome::When;
use crate::{Failure, Job, JobError, Status, WorkerRow, limits};
use chrono::{DateTime, Utc};
use diesel::connection::LoadConnection;
use diesel::mysql::Mysql;
use diesel::prelude::*;
use diesel::sql_types::{BigInt, Integer, Text};
use job_db::Database;
use serde_json::json;
use std::collections::HashSet;

portable_statements!(Mysql);
row_by_row_statements!(Mysql, "ORDER BY job_id LIMIT ", " FOR UPDATE SKIP LOCKED");
row_by_row_functions!(Mysql);

/// MariaDB cannot lock the rows of one table only; here all lock in the order of the ids.
const LOCK_ORPHANS: &str = "";

/// `[[id, attempts, uncharged], …]` as a table `v`.
const ROWS: &str =
    ", '$[*]' COLUMNS (id BIGINT PATH '$[0]', attempts INT PATH '$[1]', uncharged INT PATH '$[2]')) v ";
/// `[[id, attempts, uncharged, started_at, result], …]` as a table `v`.
const ENDINGS: &str = ", '$[*]' COLUMNS (id BIGINT PATH '$[0]', attempts INT PATH '$[1]', uncharged INT PATH '$[2]', \
     started_at VARCHAR(32) PATH '$[3]', result LONGTEXT CHARACTER SET utf8mb4 PATH '$[4]')) v ";

statement! {
    struct LastIds on Mysql {} -> (BigInt, BigInt);
    "SELECT CAST(LAST_INSERT_ID() AS SIGNED), CAST(@@auto_increment_increment AS SIGNED)"
}
statement! {
    // A locking read sees what a snapshot does not.
    struct KeyHolder<'a> on Mysql { key: &'a str => Text } -> BigInt;
    "SELECT job_id FROM unique_keys WHERE unique_key = " key " FOR UPDATE"
}
statement! {
    // Not IGNORE: that takes a shared lock on the key of another, and two who wait so deadlock when it is freed.
    struct TakeKey<'a> on Mysql { key: &'a str => Text, job_id: i64 => BigInt } -> ();
    "INSERT INTO unique_keys (unique_key, job_id) VALUES (" key ", " job_id ")
     ON DUPLICATE KEY UPDATE job_id = unique_keys.job_id"
}
statement! {
    struct FindLatest on Mysql { id: i64 => BigInt } -> JobSql;
    {JOB_SELECT} "WHERE j.id = " id " FOR UPDATE"
}
statement! {
    struct DeleteAllNew<'a> on Mysql { rows: &'a str => Text, queue: &'a str => Text, priority: i32 => Integer } -> ();
    "DELETE n FROM JSON_TABLE(" rows {ROWS} "STRAIGHT_JOIN jobs_new n FORCE INDEX (PRIMARY)
     ON n.queue = " queue " AND n.priority = " priority " AND n.job_id = v.id"
}
statement! {
    struct StartAll<'a> on Mysql { worker: i64 => BigInt, rows: &'a str => Text } -> ();
    "INSERT INTO jobs_processing (job_id, worker, attempts, uncharged, started_at)
     SELECT v.id, " worker ", v.attempts + 1, v.uncharged, " {NOW} " FROM JSON_TABLE(" rows {ROWS}
}
statement! {
    struct Started<'a> on Mysql { rows: &'a str => Text }
        -> (BigInt, Text, JsonDoc, Integer, Nullable<Text>, Integer, Integer, Instant);
    "SELECT j.id, j.kind, j.args, j.max_attempts, j.unique_key, p.attempts, p.uncharged, p.started_at
     FROM JSON_TABLE(" rows {ROWS} "STRAIGHT_JOIN jobs_processing p FORCE INDEX (PRIMARY) ON p.job_id = v.id
     STRAIGHT_JOIN jobs j FORCE INDEX (PRIMARY) ON j.id = v.id"
}
statement! {
    struct DeleteAllProcessing<'a> on Mysql { rows: &'a str => Text, worker: i64 => BigInt } -> ();
    "DELETE p FROM JSON_TABLE(" rows {ROWS} "STRAIGHT_JOIN jobs_processing p FORCE INDEX (PRIMARY)
     ON p.job_id = v.id AND p.worker = " worker " AND p.attempts = v.attempts"
}
statement! {
    struct LockProcessing<'a> on Mysql { rows: &'a str => Text, worker: i64 => BigInt } -> BigInt;
    "SELECT p.job_id FROM JSON_TABLE(" rows {ROWS} "STRAIGHT_JOIN jobs_processing p FORCE INDEX (PRIMARY)
     ON p.job_id = v.id AND p.worker = " worker " AND p.attempts = v.attempts FOR UPDATE"
}
statement! {
    struct FinishAll<'a> on Mysql { worker: i64 => BigInt, rows: &'a str => Text } -> ();
    "INSERT INTO jobs_finished (job_id, status, attempts, uncharged, started_at, finished_at, worker, result)
     SELECT v.id, 3, v.attempts, v.uncharged, CAST(v.started_at AS DATETIME(6)), " {NOW} ", " worker ", v.result
     FROM JSON_TABLE(" rows {ENDINGS}
}
statement! {
    struct FreeKeys<'a> on Mysql { rows: &'a str => Text } -> ();
    "DELETE k FROM JSON_TABLE(" rows {ROWS} "STRAIGHT_JOIN unique_keys k FORCE INDEX (unique_keys_job_id)
     ON k.job_id = v.id"
}
statement! {
    struct Due on Mysql { limit: i64 => BigInt } -> (BigInt, Integer, Integer);
    "SELECT job_id, attempts, uncharged FROM jobs_scheduled WHERE run_at <= " {NOW} "
     ORDER BY run_at, job_id LIMIT " limit " FOR UPDATE SKIP LOCKED"
}
statement! {
    struct DeleteAllScheduled<'a> on Mysql { rows: &'a str => Text } -> ();
    "DELETE s FROM JSON_TABLE(" rows {ROWS} "STRAIGHT_JOIN jobs_scheduled s FORCE INDEX (jobs_scheduled_job_id)
     ON s.job_id = v.id"
}
statement! {
    struct ComeBack<'a> on Mysql { rows: &'a str => Text } -> ();
    "INSERT INTO jobs_new (queue, priority, job_id, kind, attempts, uncharged)
     SELECT j.queue, j.priority, j.id, j.kind, v.attempts, v.uncharged
     FROM JSON_TABLE(" rows {ROWS} "STRAIGHT_JOIN jobs j FORCE INDEX (PRIMARY) ON j.id = v.id"
}
statement! {
    struct DeleteAllFinished<'a> on Mysql { rows: &'a str => Text } -> ();
    "DELETE f FROM JSON_TABLE(" rows {ROWS} "STRAIGHT_JOIN jobs_finished f FORCE INDEX (PRIMARY) ON f.job_id = v.id"
}
statement! {
    struct LockFinished<'a> on Mysql { rows: &'a str => Text } -> BigInt;
    "SELECT f.job_id FROM JSON_TABLE(" rows {ROWS} "STRAIGHT_JOIN jobs_finished f FORCE INDEX (PRIMARY)
     ON f.job_id = v.id STRAIGHT_JOIN jobs j FORCE INDEX (PRIMARY) ON j.id = v.id FOR UPDATE SKIP LOCKED"
}
statement! {
    struct LockOrphans<'a> on Mysql { rows: &'a str => Text } -> BigInt;
    "SELECT p.job_id FROM JSON_TABLE(" rows {ROWS} "STRAIGHT_JOIN jobs_processing p FORCE INDEX (PRIMARY)
     ON p.job_id = v.id AND p.attempts = v.attempts FOR UPDATE SKIP LOCKED"
}
statement! {
    struct DeleteFailures<'a> on Mysql { rows: &'a str => Text } -> ();
    "DELETE f FROM JSON_TABLE(" rows {ROWS} "STRAIGHT_JOIN job_failures f FORCE INDEX (PRIMARY) ON f.job_id = v.id"
}
statement! {
    struct DeleteJobs<'a> on Mysql { rows: &'a str => Text } -> ();
    "DELETE j FROM JSON_TABLE(" rows {ROWS} "STRAIGHT_JOIN jobs j FORCE INDEX (PRIMARY) ON j.id = v.id"
}

impl JobBackend for Mysql {
    const ENQUEUES_IN_ONE_STATEMENT: bool = false;
    const MAX_ROWS_PER_STATEMENT: usize = 1_000;
    // Well below the smallest usual max_allowed_packet, which is 16 MiB.
    const MAX_BYTES_PER_STATEMENT: usize = 4 << 20;
    const CAN_NOTIFY: bool = false;

    portable_methods!();
    row_by_row_methods!();

    fn find_latest<C: LoadConnection<Backend = Self>>(
        conn: &mut C,
        id: i64,
    ) -> Result<Option<Job>, JobError> {
        // The locking read, for a job that was committed after the caller's snapshot, locks more than it reads.
        match Self::find(conn, id)? {
            Some(job) => Ok(Some(job)),
            None => FindLatest { id }
                .get_result(conn)
                .optional()?
                .map(row::job)
                .transpose(),
        }
    }

    fn take_key<C: LoadConnection<Backend = Self>>(
        conn: &mut C,
        key: &str,
        job_id: i64,
    ) -> QueryResult<bool> {
        TakeKey { key, job_id }.execute(conn)?;
        Ok(Self::key_holder(conn, key)? == Some(job_id))
    }

    fn claim<C: LoadConnection<Backend = Self>>(
        conn: &mut C,
        request: &ClaimRequest<'_>,
    ) -> QueryResult<Vec<ClaimedJob>> {
        Self::write_transaction(conn, |conn| {
            let found: Vec<(i64, i32, i32)> = Claimable(request).load(conn)?;
            if found.is_empty() {
                return Ok(Vec::new());
            }
            let rows = &json!(found).to_string();
            DeleteAllNew {
                rows,
                queue: request.queue,
                priority: request.priority,
            }
            .execute(conn)?;
            StartAll {
                worker: request.worker,
                rows,
            }
            .execute(conn)?;
            Ok(row::all_claimed(request.worker, Started { rows }.load(conn)?))
        })
    }

    fn complete<C: LoadConnection<Backend = Self>>(
        conn: &mut C,
        worker: i64,
        completions: &[&Completion],
    ) -> QueryResult<Vec<i64>> {
        let mut recorded = Vec::with_capacity(completions.len());
        for batch in batches(completions) {
            recorded.extend(complete_batch(conn, worker, batch)?);
        }
        Ok(recorded)
    }

    fn release<C: LoadConnection<Backend = Self>>(
        conn: &mut C,
        worker: i64,
        tickets: &[&Ticket],
    ) -> QueryResult<usize> {
        let rows_of = |tickets: &[&Ticket]| {
            let rows = tickets
                .iter()
                .map(|ticket| (ticket.job_id, ticket.attempts, ticket.uncharged + 1));
            json!(rows.collect::<Vec<_>>()).to_string()
        };
        let ours: HashSet<i64> = LockProcessing {
            rows: &rows_of(tickets),
            worker,
        }
        .load(conn)?
        .into_iter()
        .collect();
        let is_ours = |ticket: &&&Ticket| ours.contains(&ticket.job_id);
        let rows = &rows_of(&tickets.iter().filter(is_ours).copied().collect::<Vec<_>>());
        if !ours.is_empty() {
            DeleteAllProcessing { rows, worker }.execute(conn)?;
            ComeBack { rows }.execute(conn)?;
        }
        Ok(ours.len())
    }

    fn delete_facts<C: LoadConnection<Backend = Self>>(conn: &mut C, ids: &[i64]) -> QueryResult<()> {
        let rows = &ids_json(ids);
        DeleteFailures { rows }.execute(conn)?;
        DeleteJobs { rows }.execute(conn)?;
        Ok(())
    }

    fn promote<C: LoadConnection<Backend = Self>>(conn: &mut C, limit: i64) -> QueryResult<usize> {
        Self::write_transaction(conn, |conn| {
            let due: Vec<(i64, i32, i32)> = Due { limit }.load(conn)?;
            if !due.is_empty() {
                let rows = &json!(due).to_string();
                DeleteAllScheduled { rows }.execute(conn)?;
                ComeBack { rows }.execute(conn)?;
            }
            Ok(due.len())
        })
    }

    fn lock_orphans<C: LoadConnection<Backend = Self>>(
        conn: &mut C,
        orphans: Vec<Ticket>,
    ) -> QueryResult<Vec<Ticket>> {
        let rows: Vec<_> = orphans
            .iter()
            .map(|ticket| (ticket.job_id, ticket.attempts))
            .collect();
        let locked: Vec<i64> = LockOrphans {
            rows: &json!(rows).to_string(),
        }
        .load(conn)?;
        Ok(orphans
            .into_iter()
            .filter(|ticket| locked.contains(&ticket.job_id))
            .collect())
    }

    fn delete_finished<C: LoadConnection<Backend = Self>>(conn: &mut C, ids: &[i64]) -> QueryResult<usize> {
        let locked: Vec<i64> = LockFinished { rows: &ids_json(ids) }.load(conn)?;
        DeleteAllFinished {
            rows: &ids_json(&locked),
        }
        .execute(conn)?;
        Self::delete_facts(conn, &locked)?;
        Ok(locked.len())
    }
}

fn ids_json(ids: &[i64]) -> String {
    json!(ids.iter().map(|id| [id]).collect::<Vec<_>>()).to_string()
}

/// The ids that a multi-row INSERT gave: InnoDB gives them in one run, in steps of `auto_increment_increment`.
fn ids_of_last_insert<C: LoadConnection<Backend = Mysql>>(
    conn: &mut C,
    rows: usize,
) -> QueryResult<Vec<i64>> {
    let (first, step): (i64, i64) = LastIds {}.get_result(conn)?;
    Ok((0..rows as i64).map(|position| first + position * step).collect())
}

/// Cuts completions so that their results fit into a packet.
fn batches<'a>(mut rest: &'a [&'a Completion]) -> impl Iterator<Item = &'a [&'a Completion]> {
    std::iter::from_fn(move || {
        let mut bytes = 0;
        let fitting = rest
            .iter()
            .take_while(|(_, result)| {
                // A quotation mark in a result is escaped once more on its way.
                bytes += 100 + 2 * result.as_ref().map_or(0, |json| json.0.len());
                bytes <= Mysql::MAX_BYTES_PER_STATEMENT
            })
            .count();
        let (batch, others) = rest.split_at(fitting.max(1).min(rest.len()));
        rest = others;
        (!batch.is_empty()).then_some(batch)
    })
}

fn complete_batch<C: LoadConnection<Backend = Mysql>>(
    conn: &mut C,
    worker: i64,
    batch: &[&Completion],
) -> QueryResult<Vec<i64>> {
    Mysql::write_transaction(conn, |conn| {
        let rows_of = |batch: &[&Completion]| {
            json!(
                batch
                    .iter()
                    .map(|(ticket, _)| (ticket.job_id, ticket.attempts))
                    .collect::<Vec<_>>()
            )
            .to_string()
        };
        let ours: Vec<i64> = LockProcessing {
            rows: &rows_of(batch),
            worker,
        }
        .load(conn)?;
        let batch: Vec<_> = if ours.len() == batch.len() {
            batch.to_vec()
        } else {
            batch
                .iter()
                .copied()
                .filter(|(ticket, _)| ours.contains(&ticket.job_id))
                .collect()
        };
        if batch.is_empty() {
            return Ok(Vec::new());
        }
        let endings: Vec<_> = batch
            .iter()
            .map(|(ticket, result)| {
                (
                    ticket.job_id,
                    ticket.attempts,
                    ticket.uncharged,
                    ticket.started_at.format("%Y-%m-%d %H:%M:%S%.6f").to_string(),
                    result.as_ref().map(|json| &json.0),
                )
            })
            .collect();
        DeleteAllProcessing {
            rows: &rows_of(&batch),
            worker,
        }
        .execute(conn)?;
        FinishAll {
            worker,
            rows: &json!(endings).to_string(),
        }
        .execute(conn)?;
        let keyed: Vec<i64> = batch
            .iter()
            .filter(|(ticket, _)| ticket.unique)
            .map(|(ticket, _)| ticket.job_id)
            .collect();
        if !keyed.is_empty() {
            FreeKeys {
                rows: &ids_json(&keyed),
            }
            .execute(conn)?;
        }
        Ok(ours)
    })
}
