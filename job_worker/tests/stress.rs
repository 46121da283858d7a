//! Worker processes are killed with -9 and the PostgreSQL server is stopped immediately and started again, in a loop, under
//! load. In the end no job is lost and no effect of `run.transaction` is doubled.
//!
//! It is a binary of its own, so that nothing else runs beside it. `GATUN_STRESS_JOBS`, `GATUN_STRESS_KILLS` and
//! `GATUN_STRESS_CRASHES` set its size.
#![cfg(feature = "postgres")]

use anyhow::Result;
use diesel::prelude::*;
use diesel::r2d2::ConnectionManager;
use diesel::sql_types::BigInt;
use job_core::{Job, NewJob, Perform, Run};
use job_test::server::PostgresServer;
use job_test::{Postgres, TestDb};
use job_worker::Worker;
use serde::{Deserialize, Serialize};
use std::collections::HashSet;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

const WORKERS: usize = 3;
const URL: &str = "GATUN_STRESS_URL";
const ACKS: &str = "GATUN_STRESS_ACKS";

/// Where jobs note what was acknowledged to them: a line each, appended by one write, so that a kill cuts none.
struct Acks(Mutex<std::fs::File>);

impl Acks {
    fn open(path: &Path) -> Self {
        let file = std::fs::OpenOptions::new()
            .create(true)
            .append(true)
            .open(path)
            .unwrap();
        Acks(Mutex::new(file))
    }

    fn note(&self, what: &str, id: i64) {
        self.0
            .lock()
            .unwrap()
            .write_all(format!("{what} {id}\n").as_bytes())
            .unwrap();
    }
}

/// Its effect is a row, written in the transaction that completes the job.
#[derive(Serialize, Deserialize)]
struct Exact {
    number: usize,
}

impl Perform for Exact {
    const KIND: &'static str = "exact";
    const MAX_ATTEMPTS: i32 = 1_000;
    type Context = Acks;
    type Output = usize;

    fn perform(&self, run: &Run<'_, Acks>) -> Result<usize> {
        let number = run.transaction(|conn: &mut PgConnection| {
            diesel::sql_query("INSERT INTO effects (job_id) VALUES ($1)")
                .bind::<BigInt, _>(run.job_id())
                .execute(conn)?;
            Ok(self.number)
        })?;
        run.context().note("exact", run.job_id());
        Ok(number)
    }

    fn retry_delay(_attempt: i32) -> Duration {
        Duration::from_millis(100)
    }
}

/// Performed at least once; its completion goes through the completer. One in ten fails at first.
#[derive(Serialize, Deserialize)]
struct Plain {
    number: usize,
}

impl Perform for Plain {
    const KIND: &'static str = "plain";
    const MAX_ATTEMPTS: i32 = 1_000;
    type Context = Acks;
    type Output = usize;

    fn perform(&self, run: &Run<'_, Acks>) -> Result<usize> {
        anyhow::ensure!(
            !self.number.is_multiple_of(10) || run.attempt() > 1,
            "not at the first attempt"
        );
        run.context().note("plain", run.job_id());
        Ok(self.number)
    }

    fn retry_delay(_attempt: i32) -> Duration {
        Duration::from_millis(100)
    }
}

/// The worker processes are this test binary, told by its environment to run this "test" alone.
#[test]
fn worker_process() {
    let (Ok(url), Ok(acks)) = (std::env::var(URL), std::env::var(ACKS)) else {
        return;
    };
    let made = Worker::new(
        ConnectionManager::<PgConnection>::new(url),
        Acks::open(Path::new(&acks)),
    )
    .register::<Exact>()
    .register::<Plain>()
    .threads(4)
    .heartbeat(Duration::from_millis(300))
    .rescue_after(Duration::from_secs(2))
    .run();
    // Where the server is down at the start, whoever started the process starts another.
    drop(made);
}

fn start_worker(url: &str, acks: &Path) -> Child {
    Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "worker_process", "--nocapture"])
        .env(URL, url)
        .env(ACKS, acks)
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap()
}

fn size(name: &str, default: usize) -> usize {
    std::env::var(name).map_or(default, |text| text.parse().unwrap())
}

/// Enqueues in transactions of 20, mixed, while the server comes and goes; gives the ids whose commit was acknowledged.
fn enqueue_all(url: &str, jobs: usize) -> Vec<i64> {
    let mut ids = Vec::with_capacity(jobs);
    let mut conn = None;
    let mut number = 0;
    while number < jobs {
        if conn.is_none() {
            conn = PgConnection::establish(url).ok();
        }
        let Some(open) = &mut conn else {
            std::thread::yield_now();
            continue;
        };
        let tried = open.transaction(|conn| -> Result<Vec<i64>> {
            let batch = (number..number + 20).map(|number| match number % 3 {
                0 => NewJob::from(Exact { number }),
                1 => Plain { number }
                    .job()
                    .run_in(Duration::from_millis(number as u64 % 500)),
                _ => Plain { number }.job().priority(number as i32 % 5),
            });
            Ok(Job::enqueue_all(conn, batch)?)
        });
        match tried {
            Ok(batch) => {
                ids.extend(batch);
                number += 20;
            }
            // It may have been committed, or not: the jobs are enqueued again, as an app would.
            Err(_) => conn = None,
        }
    }
    ids
}

/// A count, `None` while the server is away.
fn count(conn: &mut Option<PgConnection>, url: &str, sql: &str) -> Option<i64> {
    #[derive(QueryableByName)]
    struct Count {
        #[diesel(sql_type = BigInt)]
        n: i64,
    }
    if conn.is_none() {
        *conn = PgConnection::establish(url).ok();
    }
    let result = diesel::sql_query(sql).get_result::<Count>(conn.as_mut()?);
    if result.is_err() {
        *conn = None;
    }
    result.ok().map(|count| count.n)
}

#[test]
fn no_job_is_lost_and_no_effect_doubled_when_workers_and_the_server_are_killed() {
    let jobs = size("GATUN_STRESS_JOBS", 20_000);
    let kills = size("GATUN_STRESS_KILLS", 20);
    let crashes = size("GATUN_STRESS_CRASHES", 5);
    let server = PostgresServer::start();
    let db = TestDb::<Postgres>::new_on(&server.url());
    db.execute("CREATE TABLE effects (job_id BIGINT NOT NULL)");
    let acks: PathBuf = std::env::temp_dir().join(format!("gatun-stress-{}", std::process::id()));
    let url = db.url().to_owned();
    let began = Instant::now();

    let mut workers: Vec<Child> = (0..WORKERS).map(|_| start_worker(&url, &acks)).collect();
    let enqueued = AtomicBool::new(false);
    let (mut killed, mut crashed) = (0, 0);
    let acknowledged = std::thread::scope(|scope| {
        let enqueuer = scope.spawn(|| {
            let ids = enqueue_all(&url, jobs);
            enqueued.store(true, Ordering::Release);
            ids
        });
        let mut conn = None;
        let events = kills + crashes;
        let mut event = 0;
        loop {
            for worker in &mut workers {
                // It ended by itself: the server was away when it started.
                if worker.try_wait().unwrap().is_some() {
                    *worker = start_worker(&url, &acks);
                }
            }
            let Some(finished) = count(&mut conn, &url, "SELECT count(*) AS n FROM jobs_finished") else {
                continue;
            };
            // The kills are spread over the progress, not over time.
            if event < events && finished as usize >= jobs * (event + 1) / (events + 2) {
                event += 1;
                if crashed * kills <= killed * crashes && crashed < crashes {
                    server.stop_immediate();
                    server.start_again();
                    conn = None;
                    crashed += 1;
                } else {
                    let victim = killed % WORKERS;
                    workers[victim].kill().unwrap();
                    workers[victim].wait().unwrap();
                    workers[victim] = start_worker(&url, &acks);
                    killed += 1;
                }
            }
            let unfinished = "SELECT count(*) AS n FROM jobs j LEFT JOIN jobs_finished f ON f.job_id = j.id WHERE f.job_id IS NULL";
            if event == events
                && enqueued.load(Ordering::Acquire)
                && count(&mut conn, &url, unfinished) == Some(0)
            {
                break;
            }
            std::thread::sleep(Duration::from_millis(20));
        }
        enqueuer.join().unwrap()
    });
    for worker in &mut workers {
        worker.kill().unwrap();
        worker.wait().unwrap();
    }

    db.assert_invariants();
    let kept: HashSet<i64> = db.bigints("SELECT id FROM jobs").into_iter().collect();
    let lost: Vec<&i64> = acknowledged.iter().filter(|id| !kept.contains(id)).collect();
    assert!(lost.is_empty(), "lost jobs: {lost:?}");
    assert_eq!(
        db.count("SELECT count(*) FROM jobs_finished WHERE status <> 3"),
        0,
        "all are completed"
    );
    let completed: HashSet<i64> = db
        .bigints("SELECT job_id FROM jobs_finished")
        .into_iter()
        .collect();
    let (mut exact, mut plain) = (HashSet::new(), Vec::new());
    for line in std::fs::read_to_string(&acks).unwrap().lines() {
        let (kind, id) = line.split_once(' ').unwrap();
        let id: i64 = id.parse().unwrap();
        assert!(
            completed.contains(&id),
            "job {id} was acknowledged and is not completed"
        );
        match kind {
            "exact" => assert!(
                exact.insert(id),
                "the transaction of job {id} was acknowledged twice"
            ),
            _ => plain.push(id),
        }
    }
    let doubled = db.bigints("SELECT job_id FROM effects GROUP BY job_id HAVING count(*) > 1");
    assert!(doubled.is_empty(), "doubled effects: {doubled:?}");
    let missing =
        db.bigints("SELECT id FROM jobs WHERE kind = 'exact' AND id NOT IN (SELECT job_id FROM effects)");
    assert!(missing.is_empty(), "completed without their effect: {missing:?}");
    let performed: HashSet<i64> = plain.iter().copied().collect();
    println!(
        "{} jobs, {killed} workers and {crashed} times the server killed, {:.0} s: 0 lost, 0 doubled effects; \
         {} plain jobs performed {} times; {} failed attempts",
        kept.len(),
        began.elapsed().as_secs_f64(),
        performed.len(),
        plain.len(),
        db.count("SELECT count(*) FROM job_failures"),
    );
    std::fs::remove_file(&acks).unwrap();
}
