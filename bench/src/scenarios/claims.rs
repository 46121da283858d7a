//! Fifty workers claim one task at a time from one table, in seven ways: see `docs/claims.md`.

mod strategies;

use crate::clock;
use crate::figures::percentile;
use crate::run::Bench;
use crate::server::{Place, number};
use anyhow::Result;
use diesel::connection::SimpleConnection;
use diesel::prelude::*;
use diesel::result::{DatabaseErrorKind, Error};
use std::collections::HashMap;
use std::sync::Barrier;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread;
use std::time::Duration;

pub use strategies::{STRATEGIES, Strategy};

const NAME: &str = "claims";

/// How many connections claim at once.
pub const WORKERS: usize = 50;

const SAMPLE: Duration = Duration::from_millis(10);

/// What one connection has seen.
#[derive(Default)]
struct Seen {
    claimed: Vec<i64>,
    millis: Vec<f64>,
    /// Claims that came back with nothing although there were tasks.
    empty: usize,
    errors: usize,
    /// When its last claim was committed.
    last: u64,
}

pub fn measure(bench: &mut Bench) -> Result<()> {
    for strategy in STRATEGIES {
        one(bench, strategy)?;
    }
    Ok(())
}

fn one(bench: &mut Bench, strategy: &Strategy) -> Result<()> {
    let tasks = bench.options.size(100_000, 1_000);
    let seconds = (bench.options.scale * 4.0).max(0.5);
    let place = bench.server.place()?;
    (strategy.make)(&place, tasks)?;
    bench.server.checkpoint()?;
    let workers = strategy.workers;
    let (barrier, claims, over) = (
        Barrier::new(workers + 1),
        AtomicUsize::new(0),
        AtomicBool::new(false),
    );
    let (seen, waiting, began) = thread::scope(|scope| {
        let threads: Vec<_> = (0..workers)
            .map(|me| {
                let (place, barrier, claims, over) = (&place, &barrier, &claims, &over);
                scope.spawn(move || work(strategy, place, me, barrier, (claims, tasks), over))
            })
            .collect();
        let sampler = place.connect();
        barrier.wait();
        let began = clock::now();
        let waiting = sampler.and_then(|mut conn| sample(&mut conn, began, seconds, &claims, tasks));
        over.store(true, Ordering::Relaxed);
        let seen = threads
            .into_iter()
            .map(|thread| thread.join().map_err(|_| anyhow::anyhow!("a thread panicked"))?)
            .collect::<Result<Vec<Seen>>>();
        (seen, waiting, began)
    });
    let (seen, waiting) = (seen?, waiting?);
    let name = strategy.label();
    let mut holders: HashMap<i64, usize> = HashMap::new();
    for id in seen.iter().flat_map(|seen| &seen.claimed) {
        *holders.entry(*id).or_default() += 1;
    }
    let claimed: usize = seen.iter().map(|seen| seen.claimed.len()).sum();
    let ended = seen.iter().map(|seen| seen.last).max().unwrap_or(began);
    let mut millis: Vec<f64> = seen.iter().flat_map(|seen| seen.millis.clone()).collect();
    millis.sort_by(f64::total_cmp);
    let sum = |of: fn(&Seen) -> usize| seen.iter().map(of).sum::<usize>() as f64;
    bench.note(
        NAME,
        &name,
        "claims/s",
        claimed as f64 / clock::seconds(began, ended).max(1e-3),
    );
    bench.note(NAME, &name, "waiting", waiting);
    bench.note(NAME, &name, "empty", sum(|seen| seen.empty));
    bench.note(NAME, &name, "errors", sum(|seen| seen.errors));
    bench.note(NAME, &name, "rollbacks", rollbacks(&place)?);
    bench.note(
        NAME,
        &name,
        "two workers",
        holders.values().filter(|&&n| n > 1).count() as f64,
    );
    bench.note(NAME, &name, "claimed", claimed as f64);
    bench.note(NAME, &name, "tasks", holders.len() as f64);
    bench.note(NAME, &name, "p99 ms", percentile(&millis, 0.99));
    Ok(())
}

/// Claims until the time is over or there are no tasks.
fn work(
    strategy: &Strategy,
    place: &Place,
    me: usize,
    barrier: &Barrier,
    (claims, tasks): (&AtomicUsize, usize),
    over: &AtomicBool,
) -> Result<Seen> {
    let conn = place.connect().and_then(|mut conn| {
        conn.batch_execute(&format!(
            "SET SESSION CHARACTERISTICS AS TRANSACTION ISOLATION LEVEL {}; SET plan_cache_mode = force_generic_plan",
            strategy.isolation
        ))?;
        let claim = (strategy.claimer)(&mut conn, me)?;
        Ok((conn, claim))
    });
    // Whatever happened: the others wait here.
    barrier.wait();
    let (mut conn, mut claim) = conn?;
    let mut seen = Seen::default();
    while !over.load(Ordering::Relaxed) {
        let asked = clock::now();
        match claim(&mut conn) {
            Ok(ids) if ids.is_empty() => {
                if claims.load(Ordering::Relaxed) >= tasks {
                    break;
                }
                seen.empty += 1;
            }
            Ok(ids) => {
                claims.fetch_add(ids.len(), Ordering::Relaxed);
                seen.last = clock::now();
                seen.millis.push(clock::seconds(asked, seen.last) * 1e3);
                seen.claimed.extend(ids);
            }
            Err(error) if may_be_tried_again(&error) => seen.errors += 1,
            Err(error) => return Err(error.into()),
        }
    }
    Ok(seen)
}

fn may_be_tried_again(error: &Error) -> bool {
    match error {
        Error::DatabaseError(DatabaseErrorKind::SerializationFailure, _) => true,
        Error::DatabaseError(_, info) => ["could not obtain lock", "deadlock detected"]
            .iter()
            .any(|text| info.message().contains(text)),
        _ => false,
    }
}

/// How many connections wait for a lock, on average until the time is over.
fn sample(
    conn: &mut PgConnection,
    began: u64,
    seconds: f64,
    claims: &AtomicUsize,
    tasks: usize,
) -> Result<f64> {
    let (mut sum, mut samples) = (0.0, 0.0);
    while clock::seconds(began, clock::now()) < seconds && claims.load(Ordering::Relaxed) < tasks {
        sum += number(
            conn,
            "SELECT count(*) FROM pg_stat_activity
             WHERE datname = current_database() AND state = 'active' AND wait_event_type = 'Lock'",
        )?;
        samples += 1.0;
        thread::sleep(SAMPLE);
    }
    Ok(sum / f64::max(samples, 1.0))
}

/// The server counts them when a connection ends.
fn rollbacks(place: &Place) -> Result<f64> {
    let ours =
        "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()
                    AND backend_type = 'client backend'";
    for _ in 0..200 {
        if place.number(ours)? == 0.0 {
            break;
        }
        thread::sleep(SAMPLE);
    }
    place.number("SELECT xact_rollback FROM pg_stat_database WHERE datname = current_database()")
}
