//! How fast `Partition` goes through a table beside one plain keyset loop of the same batch, interleaved in one run.
//!
//! `cargo run --release -p bench -- partition [rows] [rounds] [batch] [cover]` starts a private PostgreSQL with default durability.
//! Each worker is a process.

use crate::figures::median;
use anyhow::{Result, ensure};
use diesel::prelude::*;
use diesel::r2d2::ConnectionManager;
use diesel::sql_types::{Array, BigInt};
use job_partition::{Cover, Key, Partition};
use job_test::{Postgres, TestDb, server::PostgresServer};
use std::process::{Child, Command, Stdio};
use std::time::Instant;

const WORKERS: [usize; 4] = [1, 2, 4, 8];

#[derive(QueryableByName)]
struct Row {
    #[diesel(sql_type = BigInt)]
    id: i64,
}

fn mark(ids: &[i64], conn: &mut PgConnection) -> Result<()> {
    diesel::sql_query("UPDATE items SET digest = md5(name) WHERE id = ANY($1)")
        .bind::<Array<BigInt>, _>(ids)
        .execute(conn)?;
    Ok(())
}

/// One worker, in a process of its own.
pub(crate) fn work(url: &str, cover: &str, batch: usize) -> Result<()> {
    let cover = if cover == "modulo" {
        Cover::Modulo
    } else {
        Cover::Range
    };
    let report = Partition::of("items")
        .key("id", Key::Integer)
        .pending("digest IS NULL")
        .columns("id")
        .cover(cover)
        .batch(batch)
        .run(
            &ConnectionManager::<PgConnection>::new(url),
            |rows: &[Row], conn: &mut PgConnection| {
                let ids: Vec<i64> = rows.iter().map(|row| row.id).collect();
                mark(&ids, conn)
            },
        )?;
    ensure!(report.is_complete(), "{report}");
    eprintln!("{report}");
    Ok(())
}

/// What one would write by hand for one process.
fn plain(url: &str, batch: usize) -> Result<()> {
    let conn = &mut PgConnection::establish(url)?;
    let mut last = i64::MIN;
    loop {
        let ids: Vec<i64> = diesel::sql_query(format!(
            "UPDATE items SET digest = md5(name) WHERE id IN (
               SELECT id FROM items WHERE id > $1 AND digest IS NULL ORDER BY id LIMIT {batch}
             ) RETURNING id"
        ))
        .bind::<BigInt, _>(last)
        .load::<Row>(conn)?
        .into_iter()
        .map(|row| row.id)
        .collect();
        match ids.into_iter().max() {
            Some(id) => last = id,
            None => return Ok(()),
        }
    }
}

/// Without a cover both are measured.
pub(crate) fn partition(rows: usize, rounds: usize, batch: usize, cover: Option<&str>) -> Result<()> {
    let server = PostgresServer::start();
    let mut ways: Vec<(String, Option<(&str, usize)>)> = vec![("plain loop".into(), None)];
    for cover in ["range", "modulo"]
        .into_iter()
        .filter(|name| cover.is_none_or(|cover| cover == *name))
    {
        ways.extend(WORKERS.map(|workers| (format!("{cover}, {workers} workers"), Some((cover, workers)))));
    }
    let mut rates = vec![Vec::new(); ways.len()];
    for round in 1..=rounds {
        for (number, (name, way)) in ways.iter().enumerate() {
            let rate = measure(&server, rows, |url| match way {
                None => plain(url, batch),
                Some((cover, workers)) => start_all(url, cover, *workers, batch),
            })?;
            println!("round {round}: {name}: {rate:.0} rows/s");
            rates[number].push(rate);
        }
    }
    let medians: Vec<f64> = rates.iter().map(|rates| median(rates).unwrap_or(0.0)).collect();
    println!("{rows} rows, batch {batch}, medians of {rounds}:");
    for ((name, _), rate) in ways.iter().zip(&medians) {
        println!("  {name:<20} {rate:>9.0} rows/s  ratio {:.2}", rate / medians[0]);
    }
    Ok(())
}

fn start_all(url: &str, cover: &str, workers: usize, batch: usize) -> Result<()> {
    let program = std::env::current_exe()?;
    let started: std::io::Result<Vec<_>> = (0..workers)
        .map(|_| {
            Command::new(&program)
                .args(["partition-worker", url, cover, &batch.to_string()])
                .stderr(Stdio::piped())
                .spawn()
        })
        .collect();
    // All have ended before the first error is told: none goes on without us.
    let ended: Vec<_> = started?.into_iter().map(Child::wait_with_output).collect();
    for done in ended {
        let done = done?;
        let text = String::from_utf8_lossy(&done.stderr);
        ensure!(done.status.success(), "{text}");
        if std::env::var_os("BENCH_REPORTS").is_some() {
            print!("{text}");
        }
    }
    Ok(())
}

/// A fresh table for each measurement, the rows as they lie after a load, vacuumed.
fn measure(server: &PostgresServer, rows: usize, work: impl Fn(&str) -> Result<()>) -> Result<f64> {
    let db = TestDb::<Postgres>::new_on(&server.url());
    db.execute("CREATE TABLE items (id BIGINT PRIMARY KEY, name TEXT NOT NULL, digest TEXT)");
    db.execute(&format!(
        "INSERT INTO items SELECT n, 'item number ' || n FROM generate_series(1, {rows}) n"
    ));
    db.execute("VACUUM ANALYZE items");
    db.execute("CHECKPOINT");
    let began = Instant::now();
    work(db.url())?;
    let took = began.elapsed();
    let left = db.count("SELECT count(*) FROM items WHERE digest IS NULL OR digest <> md5(name)");
    ensure!(left == 0, "{left} rows are not done");
    Ok(rows as f64 / took.as_secs_f64())
}
