//! SQLite: one writer at a time, in the same process as its data, so statements on single rows are cheap and plain.

use super::row_by_row::{InsertAllNew, InsertJobs};
use super::{Ending, JobBackend, row};
use crate::claim::{ClaimRequest, ClaimedJob, Completion, Ticket};
use crate::new_job::{NewRow, micros};
use crate::outcome::When;
use crate::{Failure, Job, JobError, Status, WorkerRow, limits};
use chrono::{DateTime, Utc};
use diesel::connection::LoadConnection;
use diesel::prelude::*;
use diesel::sql_types::{BigInt, Integer, Text};
use diesel::sqlite::Sqlite;
use job_db::Database;

portable_statements!(Sqlite);
row_by_row_statements!(Sqlite, "ORDER BY job_id LIMIT ", "");
row_by_row_functions!(Sqlite);

/// The writer is alone.
const LOCK_ORPHANS: &str = "";

statement! {
    struct LastId on Sqlite {} -> BigInt;
    "SELECT last_insert_rowid()"
}
statement! {
    struct KeyHolder<'a> on Sqlite { key: &'a str => Text } -> BigInt;
    "SELECT job_id FROM unique_keys WHERE unique_key = " key
}
statement! {
    struct TakeKey<'a> on Sqlite { key: &'a str => Text, job_id: i64 => BigInt } -> ();
    "INSERT INTO unique_keys (unique_key, job_id) VALUES (" key ", " job_id ") ON CONFLICT DO NOTHING"
}
statement! {
    struct Due on Sqlite { limit: i64 => BigInt } -> (BigInt, Integer, Integer);
    "SELECT job_id, attempts, uncharged FROM jobs_scheduled WHERE run_at <= " {NOW} "
     ORDER BY run_at, job_id LIMIT " limit
}
statement! {
    struct Start on Sqlite {
        job_id: i64 => BigInt, worker: i64 => BigInt, attempts: i32 => Integer, uncharged: i32 => Integer,
    } -> ();
    "INSERT INTO jobs_processing (job_id, worker, attempts, uncharged, started_at)
     VALUES (" job_id ", " worker ", " attempts ", " uncharged ", " {NOW} ")"
}
statement! {
    struct Started on Sqlite { job_id: i64 => BigInt }
        -> (BigInt, Text, JsonDoc, Integer, Nullable<Text>, Integer, Integer, Instant);
    "SELECT j.id, j.kind, j.args, j.max_attempts, j.unique_key, p.attempts, p.uncharged, p.started_at
     FROM jobs_processing p JOIN jobs j ON j.id = p.job_id WHERE p.job_id = " job_id
}
statement! {
    struct DeleteFailures on Sqlite { id: i64 => BigInt } -> ();
    "DELETE FROM job_failures WHERE job_id = " id
}
statement! {
    struct DeleteEnded on Sqlite { id: i64 => BigInt } -> ();
    "DELETE FROM jobs_finished WHERE job_id = " id
}

impl JobBackend for Sqlite {
    const ENQUEUES_IN_ONE_STATEMENT: bool = false;
    const MAX_ROWS_PER_STATEMENT: usize = 1_000;
    const MAX_BYTES_PER_STATEMENT: usize = 64 << 20;
    const CAN_NOTIFY: bool = false;

    portable_methods!();
    row_by_row_methods!();

    fn take_key<C: LoadConnection<Backend = Self>>(
        conn: &mut C,
        key: &str,
        job_id: i64,
    ) -> QueryResult<bool> {
        Ok(TakeKey { key, job_id }.execute(conn)? == 1)
    }

    fn claim<C: LoadConnection<Backend = Self>>(
        conn: &mut C,
        request: &ClaimRequest<'_>,
    ) -> QueryResult<Vec<ClaimedJob>> {
        Self::write_transaction(conn, |conn| {
            let mut claimed = Vec::new();
            for (job_id, attempts, uncharged) in Claimable(request).load::<(i64, i32, i32)>(conn)? {
                DeleteNew {
                    queue: request.queue,
                    priority: request.priority,
                    job_id,
                    attempts,
                    uncharged,
                }
                .execute(conn)?;
                Start {
                    job_id,
                    worker: request.worker,
                    attempts: attempts + 1,
                    uncharged,
                }
                .execute(conn)?;
                claimed.push(row::claimed(request.worker, Started { job_id }.get_result(conn)?));
            }
            Ok(claimed)
        })
    }

    fn release<C: LoadConnection<Backend = Self>>(
        conn: &mut C,
        _worker: i64,
        tickets: &[&Ticket],
    ) -> QueryResult<usize> {
        let mut released = 0;
        for ticket in tickets {
            if Self::delete_processing(conn, ticket)? == 1 {
                Self::insert_new(conn, ticket.job_id, ticket.attempts, ticket.uncharged + 1)?;
                released += 1;
            }
        }
        Ok(released)
    }

    fn complete<C: LoadConnection<Backend = Self>>(
        conn: &mut C,
        worker: i64,
        completions: &[&Completion],
    ) -> QueryResult<Vec<i64>> {
        Self::write_transaction(conn, |conn| {
            let mut recorded = Vec::with_capacity(completions.len());
            for (ticket, result) in completions {
                if Self::delete_processing(conn, ticket)? == 1 {
                    Self::insert_finished(
                        conn,
                        &Ending {
                            job_id: ticket.job_id,
                            status: Status::Completed,
                            attempts: ticket.attempts,
                            uncharged: ticket.uncharged,
                            started_at: Some(ticket.started_at),
                            worker: Some(worker),
                            result: result.as_ref(),
                            error: None,
                        },
                    )?;
                    if ticket.unique {
                        Self::free_key(conn, ticket.job_id)?;
                    }
                    recorded.push(ticket.job_id);
                }
            }
            Ok(recorded)
        })
    }

    fn delete_facts<C: LoadConnection<Backend = Self>>(conn: &mut C, ids: &[i64]) -> QueryResult<()> {
        for &id in ids {
            DeleteFailures { id }.execute(conn)?;
            DeleteJob { id }.execute(conn)?;
        }
        Ok(())
    }

    fn promote<C: LoadConnection<Backend = Self>>(conn: &mut C, limit: i64) -> QueryResult<usize> {
        Self::write_transaction(conn, |conn| {
            let due: Vec<(i64, i32, i32)> = Due { limit }.load(conn)?;
            for &(job_id, attempts, uncharged) in &due {
                DeleteScheduled {
                    job_id,
                    attempts,
                    uncharged,
                }
                .execute(conn)?;
                Self::insert_new(conn, job_id, attempts, uncharged)?;
            }
            Ok(due.len())
        })
    }

    fn delete_finished<C: LoadConnection<Backend = Self>>(conn: &mut C, ids: &[i64]) -> QueryResult<usize> {
        let mut deleted = 0;
        for &id in ids {
            if (DeleteEnded { id }).execute(conn)? == 1 {
                Self::delete_facts(conn, &[id])?;
                deleted += 1;
            }
        }
        Ok(deleted)
    }
}

/// The ids that a multi-row INSERT gave: the last one is known, and the writer was alone.
fn ids_of_last_insert<C: LoadConnection<Backend = Sqlite>>(
    conn: &mut C,
    rows: usize,
) -> QueryResult<Vec<i64>> {
    let last: i64 = LastId {}.get_result(conn)?;
    Ok((last + 1 - rows as i64..=last).collect())
}
