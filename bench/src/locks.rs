//! How fast a lock is taken and given back, beside a bare loop of `SELECT … FOR UPDATE` on the same row, interleaved in one
//! run.

use crate::figures::median;
use anyhow::{Result, ensure};
use diesel::prelude::*;
use job_lock::{Lock, LockError};
use job_test::{Postgres, TestDb, server::PostgresServer};
use std::sync::Barrier;
use std::thread;
use std::time::Instant;

const NAME: &str = "bench";
const CONTENDERS: usize = 16;

type Db = TestDb<Postgres>;

job_db::statement! {
    struct ForUpdate<'a> on diesel::pg::Pg { name: &'a str => Text } -> BigInt;
    "SELECT token FROM locks WHERE name = " name " FOR UPDATE"
}

pub(crate) fn locks(acquisitions: usize, rounds: usize) -> Result<()> {
    let server = PostgresServer::start();
    let db = Db::new_on(&server.url());
    Lock::create(&mut db.connect(), NAME)?;
    for threads in [1, CONTENDERS] {
        let (mut ours, mut bare) = (Vec::new(), Vec::new());
        for _ in 0..rounds {
            ours.push(measure(&db, threads, acquisitions, |conn| {
                Lock::synchronize(conn, NAME, |_| Ok::<_, LockError>(()))?;
                Ok(())
            })?);
            bare.push(measure(&db, threads, acquisitions, |conn| {
                conn.transaction(|conn| ForUpdate { name: NAME }.get_result::<i64>(conn))?;
                Ok(())
            })?);
        }
        let (ours, bare) = (median(&ours).unwrap_or(0.0), median(&bare).unwrap_or(0.0));
        println!(
            "{threads} at once, {acquisitions} acquisitions, medians of {rounds}: \
             synchronize {ours:.0}/s, bare loop {bare:.0}/s, ratio {:.2}",
            ours / bare
        );
    }
    let taken = db.count("SELECT token FROM locks");
    ensure!(
        taken == (2 * rounds * acquisitions) as i64,
        "{taken} acquisitions were counted"
    );
    Ok(())
}

/// Acquisitions a second, by threads that begin together and share them.
fn measure(
    db: &Db,
    threads: usize,
    acquisitions: usize,
    acquire: impl Fn(&mut PgConnection) -> Result<()> + Sync,
) -> Result<f64> {
    let ready = Barrier::new(threads + 1);
    let began = thread::scope(|scope| -> Result<Instant> {
        let threads: Vec<_> = (0..threads)
            .map(|thread| {
                let (ready, acquire) = (&ready, &acquire);
                scope.spawn(move || -> Result<()> {
                    let conn = &mut db.connect();
                    ready.wait();
                    for _ in (thread..acquisitions).step_by(threads) {
                        acquire(conn)?;
                    }
                    Ok(())
                })
            })
            .collect();
        ready.wait();
        let began = Instant::now();
        for thread in threads {
            thread.join().expect("a thread that ends")?;
        }
        Ok(began)
    })?;
    Ok(acquisitions as f64 / began.elapsed().as_secs_f64())
}
