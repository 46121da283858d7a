use super::Conn;
use super::table::{Account, backfill_accounts as accounts, lower, make, prove};
use crate::{Command, crew};
use anyhow::{Result, ensure};
use diesel::prelude::*;
use diesel::r2d2::ConnectionManager;
use job_partition::{Outcome, Partition, Report};
use std::time::Instant;

pub(crate) fn run(command: &Command, url: &str) -> Result<()> {
    match *command {
        Command::Worker => worker(url),
        Command::Everything { rows, workers } => everything(url, rows, workers),
    }
}

/// Fills `sort_name` of all accounts. This is all that a backfill needs; however many of these there are, and whenever they
/// come and go, each row is done once.
fn fill(url: &str) -> Result<Report> {
    let report = Partition::of("backfill_accounts")
        .pending("sort_name IS NULL")
        .columns("id, name")
        .run(
            &ConnectionManager::<Conn>::new(url),
            |batch: &[Account], conn: &mut Conn| {
                for account in batch {
                    ensure!(!account.name.is_empty(), "account {} has no name", account.id);
                }
                let ids: Vec<i64> = batch.iter().map(|account| account.id).collect();
                diesel::update(accounts::table.filter(accounts::id.eq_any(ids)))
                    .set((
                        accounts::sort_name.eq(lower(accounts::name).nullable()),
                        // Only for the proof: it counts how often the row was done.
                        accounts::times.eq(accounts::times + 1),
                    ))
                    .execute(conn)?;
                // Only for the show: whoever kills workers does so in the middle of a batch.
                println!("{}", batch.len());
                Ok(())
            },
        )?;
    Ok(report)
}

fn worker(url: &str) -> Result<()> {
    let report = fill(url)?;
    eprintln!("worker {}: {report}", std::process::id());
    // The poison row is all that may be left.
    ensure!(
        report.outcome == Outcome::Incomplete { busy: 0, failed: 1 },
        "{report}"
    );
    Ok(())
}

fn everything(url: &str, rows: i64, workers: usize) -> Result<()> {
    let began = Instant::now();
    make(url, rows)?;
    println!("{rows} rows made in {:.1} s", began.elapsed().as_secs_f64());
    let began = Instant::now();
    let crew = crew::watch(rows, workers)?;
    let took = began.elapsed().as_secs_f64();
    let proof = prove(url)?;
    println!(
        "{} rows filled in {took:.1} s ({:.0}/s) by {} worker processes, {} of them killed; done twice: {}; not done: {} (the poison row)",
        proof.once,
        proof.once as f64 / took,
        crew.started,
        crew.killed,
        proof.more,
        proof.never,
    );
    ensure!(
        (proof.once, proof.more, proof.never, proof.wrong) == (rows - 1, 0, 1, 0),
        "that is not each row exactly once"
    );
    println!("each row but the poison one was done exactly once");
    Ok(())
}
