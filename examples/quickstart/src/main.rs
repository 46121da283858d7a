//! A tour of Gatun on SQLite, with nothing to install:
//!
//! ```text
//! cargo run -p quickstart                   counts the words of this repository
//! cargo run -p quickstart -- some/folder    counts the words of the text files in a folder
//! ```
//!
//! The tour goes in four steps: define kinds of jobs, enqueue jobs in transactions, perform them, look at what came of it.

mod jobs;
mod screen;
mod sections;

use anyhow::ensure;
use diesel::connection::SimpleConnection;
use diesel::prelude::*;
use diesel::r2d2::ConnectionManager;
use job_core::{Job, Perform, Run, Status, cancel};
use job_worker::Worker;
use jobs::{Remind, Sum, SumUp, documents, totals};
use sections::Section;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

// --- 1. Define ---------------------------------------------------------------------------------------------------------
// A job is a struct: its fields are its arguments, kept as JSON. `perform` does the work.

/// What the worker shares with its jobs.
struct Library {
    folder: PathBuf,
}

type Words = BTreeMap<String, i64>;

/// Counts the words of one section of a file. Its result is kept with the job.
#[derive(Serialize, Deserialize)]
struct CountWords {
    section: Section,
}

impl Perform for CountWords {
    const KIND: &'static str = "count_words";
    const QUEUE: &'static str = "words";
    type Context = Library;
    type Output = Words;

    fn perform(&self, run: &Run<'_, Library>) -> anyhow::Result<Words> {
        let text = match self.section.read(&run.context().folder) {
            // A job whose subject is gone ends itself: trying again would not help.
            Err(error) if error.kind() == ErrorKind::NotFound => {
                return Err(cancel(format!("{} is gone", self.section.file)));
            }
            text => text?,
        };
        let mut words = Words::new();
        for word in text
            .split(|c: char| !c.is_alphabetic())
            .filter(|word| !word.is_empty())
        {
            *words.entry(word.to_lowercase()).or_default() += 1;
        }
        Ok(words)
    }
}

/// Calls a service that turns its first callers away, as services do when they are busy.
#[derive(Serialize, Deserialize)]
struct CallService {
    turns_away: i32,
}

impl Perform for CallService {
    const KIND: &'static str = "call_service";
    type Context = Library;
    type Output = String;

    fn perform(&self, run: &Run<'_, Library>) -> anyhow::Result<String> {
        // An error is a failed attempt. The job is tried again, until its attempts are used up.
        ensure!(run.attempt() > self.turns_away, "the service answered: 503, busy");
        Ok(format!("200, thank you, caller number {}", run.attempt()))
    }

    fn retry_delay(_attempt: i32) -> Duration {
        Duration::from_millis(300) // where you say nothing: from 5 seconds, doubling, up to 6 hours
    }
}

fn main() -> anyhow::Result<()> {
    let this_repository = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let folder = std::env::args_os()
        .nth(1)
        .map_or(this_repository, PathBuf::from)
        .canonicalize()?;

    // The database: a file that goes when this function ends.
    let temporary = tempfile::Builder::new().prefix("gatun-quickstart-").tempdir()?;
    let url = temporary.path().join("app.sqlite3").display().to_string();
    println!("The database is {url}");
    let conn = &mut SqliteConnection::establish(&url)?;
    job_core::prepare_connection(conn)?; // SQLite: wait for other writers
    conn.batch_execute(
        "CREATE TABLE documents (path TEXT PRIMARY KEY, sections BIGINT NOT NULL);
         CREATE TABLE totals (word TEXT PRIMARY KEY, count BIGINT NOT NULL);",
    )?;
    job_core::migrate(conn)?;

    // --- 2. Enqueue ----------------------------------------------------------------------------------------------------
    // On the app's own connection, in the app's own transactions: a job exists if its transaction is committed.
    let start = Instant::now();
    let documents = sections::cut(&folder)?;
    for (path, sections) in &documents {
        conn.immediate_transaction(|conn| {
            let row = (
                documents::path.eq(path),
                documents::sections.eq(sections.len() as i64),
            );
            diesel::insert_into(documents::table).values(row).execute(conn)?;
            Job::enqueue_all(
                conn,
                sections.iter().cloned().map(|section| CountWords { section }),
            )?;
            anyhow::Ok(())
        })?;
    }

    let sum = SumUp.job().priority(10).enqueue(conn)?; // the lower goes first; 0 is the default
    let retried = CallService { turns_away: 2 }.enqueue(conn)?;
    let hopeless = CallService { turns_away: 100 }
        .job()
        .max_attempts(2)
        .enqueue(conn)?;
    let scheduled = Remind::of("the milk")
        .job()
        .run_in(Duration::from_secs(2))
        .enqueue(conn)?;
    let section = Section::all_of("no/such/file.txt");
    let gone = CountWords { section }.enqueue(conn)?;
    // While a job with this key is waiting or performed, enqueueing another gives that one.
    let unique: Vec<Job> = (0..5)
        .map(|_| Remind::of("the bread").job().unique("bread").enqueue(conn))
        .collect::<Result<_, _>>()?;
    // And a transaction that is rolled back leaves no job.
    let rolled_back = conn.immediate_transaction(|conn| {
        CallService { turns_away: 0 }.enqueue(conn)?;
        Err::<(), _>(diesel::result::Error::RollbackTransaction)
    });
    assert!(rolled_back.is_err());

    let jobs = Job::counts(conn)?.total();
    println!(
        "Enqueued {jobs} jobs, for {} files of {}, in {:.2} s",
        documents.len(),
        folder.display(),
        start.elapsed().as_secs_f64()
    );

    // --- 3. Perform ----------------------------------------------------------------------------------------------------
    // In an app this is a program of its own, and there may be many. It ends with SIGTERM, SIGINT or, as here, its handle.
    let start = Instant::now();
    let worker = Worker::new(
        ConnectionManager::<SqliteConnection>::new(&url),
        Library { folder },
    )
    .register::<CountWords>()
    .register::<SumUp>()
    .register::<CallService>()
    .register::<Remind>()
    .queues(["words", "default"])
    .threads(4);
    let handle = worker.handle();
    let working = std::thread::spawn(move || worker.run());
    let mut counted = None;
    screen::follow(jobs, || {
        if counted.is_none() && Job::counts_in(conn, CountWords::QUEUE)?.unfinished() == 0 {
            counted = Some(start.elapsed());
        }
        Ok((!working.is_finished()).then_some(Job::counts(conn)?.unfinished()))
    })?;
    let all = start.elapsed();
    handle.stop();
    working.join().expect("a worker that does not panic")?;

    // --- 4. Look -------------------------------------------------------------------------------------------------------
    // A job can be found by its id at any time: a web app's status page does no more than this.
    let counts = Job::counts(conn)?;
    let (counts_in_queue, all) = (Job::counts_in(conn, CountWords::QUEUE)?, all.as_secs_f64());
    ensure!(
        counts.unfinished() == 0,
        "stopped with {} jobs left",
        counts.unfinished()
    );
    screen::speed(counts_in_queue.total(), counted.unwrap_or_default());
    println!(
        "After {all:.2} s all {} jobs had ended; the last one was not due before 2 s",
        counts.total()
    );
    println!();
    for status in Status::ALL {
        println!("{:<12}{:>6}", status.name(), counts.of(status));
    }

    println!();
    let sum = Job::find(conn, sum.id)?.output::<Sum>()?;
    println!(
        "Summed up: {} words in {} sections, {} different ones",
        sum.words, sum.sections, sum.distinct
    );
    let top: Vec<(String, i64)> = totals::table
        .order((totals::count.desc(), totals::word.asc()))
        .limit(10)
        .load(conn)?;
    for (word, count) in top {
        println!("{count:>8}  {word}");
    }
    screen::history(conn, "Retried", retried.id)?;
    screen::history(conn, "Out of attempts", hopeless.id)?;
    screen::history(conn, "Cancelled itself", gone.id)?;
    screen::history(conn, "Scheduled", scheduled.id)?;
    if let (Some(due), Some(started)) = (scheduled.run_at(), Job::find(conn, scheduled.id)?.started_at()) {
        println!(
            "    started {} ms after it was due",
            (started - due).num_milliseconds()
        );
    }
    screen::history(conn, "Unique", unique[0].id)?;
    let made: BTreeSet<i64> = unique.iter().map(|job| job.id).collect();
    println!(
        "    enqueued {} times, which made {} job",
        unique.len(),
        made.len()
    );
    Ok(())
}
