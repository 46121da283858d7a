//! The ways to claim. Each gives the ids that it has claimed and committed.

use super::WORKERS;
use crate::scenarios::bare;
use crate::scenarios::fill::Fill;
use crate::server::Place;
use anyhow::Result;
use diesel::connection::SimpleConnection;
use diesel::prelude::*;
use diesel::result::Error;
use job_core::{ClaimRequest, JobError, WorkerRow, claim};
use job_db::statement;

/// A claim by one connection, which may remember something between its calls.
type Claim = Box<dyn FnMut(&mut PgConnection) -> QueryResult<Vec<i64>>>;

/// One way, at one isolation level.
pub struct Strategy {
    pub number: &'static str,
    pub name: &'static str,
    pub isolation: &'static str,
    pub workers: usize,
    /// Makes the table and so many tasks.
    pub make: fn(&Place, usize) -> Result<()>,
    /// Prepares the claims of worker number so and so.
    pub claimer: fn(&mut PgConnection, usize) -> Result<Claim>,
}

impl Strategy {
    /// Its name among the figures.
    pub fn label(&self) -> String {
        format!("({}) {} @ {}", self.number, self.name, self.isolation)
    }
}

macro_rules! strategy {
    ($number:literal, $name:literal, $isolation:literal, $make:ident, $claimer:ident) => {
        Strategy {
            number: $number,
            name: $name,
            isolation: $isolation,
            workers: WORKERS,
            make: $make,
            claimer: $claimer,
        }
    };
}

pub const STRATEGIES: &[Strategy] = &[
    strategy!("1", "min(id)", "READ COMMITTED", make, minimum),
    strategy!(
        "2",
        "min(id), condition repeated",
        "READ COMMITTED",
        make,
        minimum_twice
    ),
    strategy!("3", "FOR UPDATE", "READ COMMITTED", make, for_update),
    strategy!("4", "FOR UPDATE NOWAIT", "READ COMMITTED", make, nowait),
    strategy!("5", "FOR UPDATE SKIP LOCKED", "READ COMMITTED", make, skip_locked),
    strategy!(
        "5",
        "SKIP LOCKED, one statement",
        "READ COMMITTED",
        make,
        skip_locked_at_once
    ),
    strategy!("6", "slots: id mod n", "READ COMMITTED", make_slots, slots),
    strategy!("7", "Gatun's claim", "READ COMMITTED", make_jobs, gatun_one),
    Strategy {
        workers: 1,
        ..strategy!(
            "7",
            "Gatun's claim, as its worker claims",
            "READ COMMITTED",
            make_jobs,
            gatun_many
        )
    },
    strategy!("1", "min(id)", "REPEATABLE READ", make, minimum),
    strategy!("3", "FOR UPDATE", "REPEATABLE READ", make, for_update),
    strategy!(
        "5",
        "FOR UPDATE SKIP LOCKED",
        "REPEATABLE READ",
        make,
        skip_locked
    ),
    strategy!("1", "min(id)", "SERIALIZABLE", make, minimum),
    strategy!("3", "FOR UPDATE", "SERIALIZABLE", make, for_update),
    strategy!("5", "FOR UPDATE SKIP LOCKED", "SERIALIZABLE", make, skip_locked),
];

fn make(place: &Place, tasks: usize) -> Result<()> {
    let mut conn = place.connect()?;
    conn.batch_execute(&format!(
        "CREATE TABLE tasks (id BIGINT PRIMARY KEY, worker BIGINT);
         INSERT INTO tasks SELECT id, NULL FROM generate_series(1, {tasks}) id;
         CREATE INDEX tasks_free ON tasks (id) WHERE worker IS NULL"
    ))?;
    Ok(conn.batch_execute("VACUUM ANALYZE tasks")?)
}

fn make_slots(place: &Place, tasks: usize) -> Result<()> {
    make(place, tasks)?;
    Ok(place.connect()?.batch_execute(&format!(
        "CREATE INDEX tasks_slots ON tasks ((id % {WORKERS}), id) WHERE worker IS NULL; ANALYZE tasks"
    ))?)
}

fn make_jobs(place: &Place, tasks: usize) -> Result<()> {
    bare::set_up(place)?;
    Fill::small(tasks).put(place)?;
    Ok(place.connect()?.batch_execute("VACUUM ANALYZE jobs, jobs_new")?)
}

statement! {
    struct Minimum on diesel::pg::Pg { me: i64 => BigInt } -> BigInt;
    "UPDATE tasks SET worker = " me " WHERE id = (SELECT min(id) FROM tasks WHERE worker IS NULL) RETURNING id"
}
statement! {
    struct MinimumTwice on diesel::pg::Pg { me: i64 => BigInt } -> BigInt;
    "UPDATE tasks SET worker = " me " WHERE id = (SELECT min(id) FROM tasks WHERE worker IS NULL)
         AND worker IS NULL RETURNING id"
}
statement! {
    struct Lock on diesel::pg::Pg {} -> BigInt;
    "SELECT id FROM tasks WHERE worker IS NULL ORDER BY id LIMIT 1 FOR UPDATE"
}
statement! {
    struct LockNowait on diesel::pg::Pg {} -> BigInt;
    "SELECT id FROM tasks WHERE worker IS NULL ORDER BY id LIMIT 1 FOR UPDATE NOWAIT"
}
statement! {
    struct LockSkip on diesel::pg::Pg {} -> BigInt;
    "SELECT id FROM tasks WHERE worker IS NULL ORDER BY id LIMIT 1 FOR UPDATE SKIP LOCKED"
}
statement! {
    struct TakeSkip on diesel::pg::Pg { me: i64 => BigInt } -> BigInt;
    "UPDATE tasks SET worker = " me " WHERE id = (SELECT id FROM tasks WHERE worker IS NULL
         ORDER BY id LIMIT 1 FOR UPDATE SKIP LOCKED) RETURNING id"
}
statement! {
    struct Take on diesel::pg::Pg { me: i64 => BigInt, id: i64 => BigInt } -> ();
    "UPDATE tasks SET worker = " me " WHERE id = " id
}
statement! {
    struct TakeOfSlot on diesel::pg::Pg { me: i64 => BigInt, slot: i64 => BigInt } -> BigInt;
    "UPDATE tasks SET worker = " me " WHERE id = (SELECT id FROM tasks
         WHERE worker IS NULL AND id % 50 = " slot " ORDER BY id LIMIT 1) AND worker IS NULL RETURNING id"
}
statement! {
    struct TakeSlot on diesel::pg::Pg { slot: i64 => BigInt } -> Bool;
    "SELECT pg_try_advisory_lock(4711, " slot "::int)"
}

fn minimum(_: &mut PgConnection, me: usize) -> Result<Claim> {
    Ok(Box::new(move |conn| Minimum { me: me as i64 }.load(conn)))
}

fn minimum_twice(_: &mut PgConnection, me: usize) -> Result<Claim> {
    Ok(Box::new(move |conn| MinimumTwice { me: me as i64 }.load(conn)))
}

fn for_update(_: &mut PgConnection, me: usize) -> Result<Claim> {
    Ok(locking(me, |conn| Lock {}.get_result(conn).optional()))
}

fn nowait(_: &mut PgConnection, me: usize) -> Result<Claim> {
    Ok(locking(me, |conn| LockNowait {}.get_result(conn).optional()))
}

fn skip_locked(_: &mut PgConnection, me: usize) -> Result<Claim> {
    Ok(locking(me, |conn| LockSkip {}.get_result(conn).optional()))
}

fn skip_locked_at_once(_: &mut PgConnection, me: usize) -> Result<Claim> {
    Ok(Box::new(move |conn| TakeSkip { me: me as i64 }.load(conn)))
}

/// Locks a free task, then takes it.
fn locking(me: usize, lock: fn(&mut PgConnection) -> QueryResult<Option<i64>>) -> Claim {
    Box::new(move |conn| {
        conn.transaction(|conn| {
            let Some(id) = lock(conn)? else {
                return Ok(Vec::new());
            };
            Take { me: me as i64, id }.execute(conn)?;
            Ok(vec![id])
        })
    })
}

/// Each worker owns the tasks whose id leaves its number as the remainder, for as long as it holds the lock.
fn slots(conn: &mut PgConnection, me: usize) -> Result<Claim> {
    let slot = me as i64;
    let held: bool = TakeSlot { slot }.get_result(conn)?;
    anyhow::ensure!(held, "slot {slot} is taken");
    Ok(Box::new(move |conn| TakeOfSlot { me: slot, slot }.load(conn)))
}

fn gatun_one(conn: &mut PgConnection, _: usize) -> Result<Claim> {
    gatun(conn, 1)
}

fn gatun_many(conn: &mut PgConnection, _: usize) -> Result<Claim> {
    gatun(conn, 500)
}

fn gatun(conn: &mut PgConnection, limit: i64) -> Result<Claim> {
    let queues = ["default".to_owned()];
    let kinds = ["nothing".to_owned()];
    let worker = WorkerRow::register(conn, &queues, &kinds)?.id;
    let mut after = 0;
    Ok(Box::new(move |conn| {
        let request = ClaimRequest {
            worker,
            queue: "default",
            priority: 0,
            after,
            kinds: &kinds,
            limit,
        };
        let claimed = claim(conn, &request).map_err(|error| match error {
            JobError::Database(error) => error,
            other => Error::QueryBuilderError(other.to_string().into()),
        })?;
        let ids: Vec<i64> = claimed.iter().map(|job| job.ticket.job_id).collect();
        // As the worker does: on from the last, and from the start again when there is nothing more.
        after = ids.last().copied().unwrap_or(0);
        Ok(ids)
    }))
}
