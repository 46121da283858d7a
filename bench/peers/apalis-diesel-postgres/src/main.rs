//! apalis-diesel-postgres: six workers in one process, each for eight tasks at once, woken by notifications. One worker acknowledges
//! its tasks one by one, so several are faster; the buffers are as large as helped.

use anyhow::Result;
use apalis::prelude::*;
use apalis_diesel_postgres::{Config, PgPool, PostgresStorage, build_pool_with, setup};
use diesel::prelude::*;
use protocol::Sample;
use serde::{Deserialize, Serialize};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, OnceLock, mpsc};
use std::time::{Duration, Instant};

const WORKERS: usize = 6;
const AT_ONCE: usize = 8;

static PERFORMED: AtomicUsize = AtomicUsize::new(0);
static BEGUN: OnceLock<Mutex<mpsc::Sender<Instant>>> = OnceLock::new();

#[derive(Clone, Debug, Serialize, Deserialize)]
struct Nothing {
    padding: String,
}

async fn perform(_: Nothing) -> Result<(), BoxDynError> {
    let began = Instant::now();
    if let Some(sender) = BEGUN.get() {
        let _ = sender.lock().map(|sender| sender.send(began));
    }
    PERFORMED.fetch_add(1, Ordering::Relaxed);
    Ok(())
}

fn task() -> Nothing {
    Nothing {
        padding: protocol::padding(),
    }
}

fn config() -> Config {
    Config::new("nothing").set_buffer_size(100)
}

fn start(pool: &PgPool) {
    for worker in 0..WORKERS {
        let storage = PostgresStorage::<Nothing>::new_with_notify(pool, &config());
        tokio::spawn(async move {
            let ended = WorkerBuilder::new(format!("worker-{worker}"))
                .backend(storage)
                .concurrency(AT_ONCE)
                .build(perform)
                .run()
                .await;
            if let Err(error) = ended {
                eprintln!("worker {worker}: {error}");
            }
        });
    }
}

fn main() -> Result<()> {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    let entered = runtime.enter();
    let pool = build_pool_with(protocol::url(), |pool| pool.max_size((WORKERS * 3 + 6) as u32))?;
    let storage = PostgresStorage::<Nothing>::new_with_config(&pool, &config());
    let (verb, numbers) = protocol::verb();
    match (verb.as_str(), numbers.as_slice()) {
        ("setup", []) => {
            runtime.block_on(setup(&pool))?;
            protocol::say_setup(
                "0.6.0",
                "6 workers of 8 tasks each, notifications, buffers of 100",
            );
        }
        ("enqueue", &[jobs]) => bulk(&storage, &pool, jobs, 1_000)?,
        ("bulk", &[jobs, batch]) => bulk(&storage, &pool, jobs, batch)?,
        ("single", &[jobs]) => {
            let conn = &mut *pool.get()?;
            let began = Instant::now();
            for _ in 0..jobs {
                storage.push_with_conn(conn, task())?;
            }
            protocol::say_rate(jobs, began);
        }
        ("drain", &[jobs]) => {
            let (cpu, began) = (protocol::cpu_us(), Instant::now());
            start(&pool);
            while PERFORMED.load(Ordering::Relaxed) < jobs {
                std::thread::sleep(Duration::from_millis(5));
            }
            while left(&pool)? > 0 {
                std::thread::sleep(Duration::from_millis(5));
            }
            protocol::say_drain(jobs, began.elapsed(), cpu);
        }
        ("latency", &[samples]) => {
            let (sender, begun) = mpsc::channel();
            let _ = BEGUN.set(Mutex::new(sender));
            start(&pool);
            std::thread::sleep(Duration::from_secs(1));
            let conn = &mut *pool.get()?;
            let mut all = Vec::new();
            for n in 0..samples {
                std::thread::sleep(protocol::pause(n));
                let called = Instant::now();
                storage.push_with_conn(conn, task())?;
                let returned = Instant::now();
                all.push(Sample {
                    called,
                    returned,
                    began: begun.recv()?,
                });
            }
            protocol::say_latency(&all);
        }
        ("idle", &[seconds]) => {
            start(&pool);
            std::thread::sleep(protocol::SETTLE);
            let cpu = protocol::cpu_us();
            std::thread::sleep(Duration::from_secs(seconds as u64));
            protocol::say_idle(protocol::cpu_us() - cpu);
        }
        _ => anyhow::bail!("unknown verb {verb} {numbers:?}"),
    }
    drop(entered);
    // The database goes with all that the workers would still do.
    std::process::exit(0);
}

fn bulk(storage: &PostgresStorage<Nothing>, pool: &PgPool, jobs: usize, batch: usize) -> Result<()> {
    let conn = &mut *pool.get()?;
    let began = Instant::now();
    for at in (0..jobs).step_by(batch) {
        storage.push_batch_with_conn(conn, (at..jobs.min(at + batch)).map(|_| task()))?;
    }
    protocol::say_rate(jobs, began);
    Ok(())
}

fn left(pool: &PgPool) -> Result<i64> {
    use diesel::dsl::sql;
    use diesel::sql_types::BigInt;
    let query = "(SELECT count(*) FROM apalis.jobs WHERE status <> 'Done')";
    Ok(diesel::select(sql::<BigInt>(query)).get_result(&mut *pool.get()?)?)
}
