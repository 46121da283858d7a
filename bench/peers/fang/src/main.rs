//! fang, blocking, on Diesel. Its workers claim one task each; the only setting that matters for speed is how many there are and
//! how long they sleep when there is nothing: 8, and from 5 ms to 50 ms.

use anyhow::Result;
use diesel::prelude::*;
use diesel::r2d2::{ConnectionManager, Pool};
use fang::{
    FangError, Queue, Queueable, Runnable, SleepParams, WorkerPool, run_migrations_postgres, typetag,
};
use protocol::Sample;
use serde::{Deserialize, Serialize};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, OnceLock, mpsc};
use std::thread::sleep;
use std::time::{Duration, Instant};

const WORKERS: u32 = 8;

static PERFORMED: AtomicUsize = AtomicUsize::new(0);
static BEGUN: OnceLock<Mutex<mpsc::Sender<Instant>>> = OnceLock::new();

#[derive(Serialize, Deserialize)]
#[serde(crate = "fang::serde")]
struct Nothing {
    padding: String,
}

#[typetag::serde]
impl Runnable for Nothing {
    fn run(&self, _: &dyn Queueable) -> Result<(), FangError> {
        let began = Instant::now();
        if let Some(sender) = BEGUN.get() {
            let _ = sender.lock().map(|sender| sender.send(began));
        }
        PERFORMED.fetch_add(1, Ordering::Relaxed);
        Ok(())
    }
}

fn task() -> Nothing {
    Nothing {
        padding: protocol::padding(),
    }
}

fn start(queue: &Queue) {
    let mut pool = WorkerPool::<Queue>::builder()
        .queue(queue.clone())
        .number_of_workers(WORKERS)
        .sleep_params(SleepParams {
            sleep_period: Duration::from_millis(5),
            max_sleep_period: Duration::from_millis(50),
            min_sleep_period: Duration::from_millis(5),
            sleep_step: Duration::from_millis(5),
        })
        .build();
    pool.start().expect("workers that start");
}

fn insert(queue: &Queue, jobs: usize) -> Result<()> {
    for _ in 0..jobs {
        queue
            .insert_task(&task())
            .map_err(|error| anyhow::anyhow!("{error:?}"))?;
    }
    Ok(())
}

fn main() -> Result<()> {
    let pool = Pool::builder()
        .max_size(WORKERS + 2)
        .build(ConnectionManager::<PgConnection>::new(protocol::url()))?;
    let queue = Queue::builder().connection_pool(pool.clone()).build();
    let (verb, numbers) = protocol::verb();
    match (verb.as_str(), numbers.as_slice()) {
        ("setup", []) => {
            run_migrations_postgres(&mut *pool.get()?).map_err(|error| anyhow::anyhow!("{error}"))?;
            protocol::say_setup(
                "0.11.0",
                "blocking, 8 workers that sleep 5 to 50 ms when there is nothing",
            );
        }
        // It has no call for many, so eight threads at once.
        ("enqueue", &[jobs]) => {
            let began = Instant::now();
            std::thread::scope(|scope| {
                let threads: Vec<_> = (0..8)
                    .map(|at| {
                        let queue = &queue;
                        scope.spawn(move || insert(queue, jobs / 8 + usize::from(at < jobs % 8)))
                    })
                    .collect();
                threads
                    .into_iter()
                    .try_for_each(|thread| thread.join().expect("a thread that ends"))
            })?;
            protocol::say_rate(jobs, began);
        }
        ("bulk", _) => protocol::say_no_bulk(),
        ("single", &[jobs]) => {
            let began = Instant::now();
            insert(&queue, jobs)?;
            protocol::say_rate(jobs, began);
        }
        ("drain", &[jobs]) => {
            let (cpu, began) = (protocol::cpu_us(), Instant::now());
            start(&queue);
            while PERFORMED.load(Ordering::Relaxed) < jobs {
                sleep(Duration::from_millis(5));
            }
            while left(&pool)? > 0 {
                sleep(Duration::from_millis(5));
            }
            protocol::say_drain(jobs, began.elapsed(), cpu);
            // Its workers cannot be stopped.
            std::process::exit(0);
        }
        ("latency", &[samples]) => {
            let (sender, begun) = mpsc::channel();
            let _ = BEGUN.set(Mutex::new(sender));
            start(&queue);
            sleep(Duration::from_secs(1));
            let mut all = Vec::new();
            for n in 0..samples {
                sleep(protocol::pause(n));
                let called = Instant::now();
                insert(&queue, 1)?;
                let returned = Instant::now();
                all.push(Sample {
                    called,
                    returned,
                    began: begun.recv()?,
                });
            }
            protocol::say_latency(&all);
            std::process::exit(0);
        }
        ("idle", &[seconds]) => {
            start(&queue);
            sleep(protocol::SETTLE);
            let cpu = protocol::cpu_us();
            sleep(Duration::from_secs(seconds as u64));
            protocol::say_idle(protocol::cpu_us() - cpu);
            std::process::exit(0);
        }
        _ => anyhow::bail!("unknown verb {verb} {numbers:?}"),
    }
    Ok(())
}

fn left(pool: &Pool<ConnectionManager<PgConnection>>) -> Result<i64> {
    use diesel::dsl::sql;
    use diesel::sql_types::BigInt;
    Ok(diesel::select(sql::<BigInt>("(SELECT count(*) FROM fang_tasks)")).get_result(&mut *pool.get()?)?)
}
