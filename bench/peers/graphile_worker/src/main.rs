//! graphile_worker (Rust), at the setting of its own throughput benchmark: a local queue of 5,000, completions batched for 5 ms,
//! 500 at once, polling every 5 ms.

use anyhow::Result;
use graphile_worker::{
    IntoTaskHandlerResult, JobSpec, LocalQueueConfig, TaskHandler, Worker, WorkerContext, WorkerContextExt,
    WorkerOptions, WorkerUtils,
};
use protocol::Sample;
use serde::{Deserialize, Serialize};
use sqlx::PgPool;
use sqlx::postgres::PgPoolOptions;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};
use tokio::sync::mpsc;

#[derive(Clone, Serialize, Deserialize)]
struct Nothing {
    n: u64,
    padding: String,
}

impl Nothing {
    fn new() -> Self {
        Nothing {
            n: 0,
            padding: protocol::padding(),
        }
    }
}

#[derive(Clone, Debug, Default)]
struct Performed(Arc<AtomicUsize>);

impl TaskHandler for Nothing {
    const IDENTIFIER: &'static str = "nothing";

    async fn run(self, ctx: WorkerContext) -> impl IntoTaskHandlerResult {
        if let Some(performed) = ctx.get_ext::<Performed>() {
            performed.0.fetch_add(1, Ordering::Relaxed);
        }
        Ok::<(), String>(())
    }
}

#[derive(Clone, Serialize, Deserialize)]
struct Timed {
    padding: String,
}

#[derive(Clone, Debug)]
struct Begun(mpsc::UnboundedSender<Instant>);

impl TaskHandler for Timed {
    const IDENTIFIER: &'static str = "timed";

    async fn run(self, ctx: WorkerContext) -> impl IntoTaskHandlerResult {
        let began = Instant::now();
        if let Some(begun) = ctx.get_ext::<Begun>() {
            let _ = begun.0.send(began);
        }
        Ok::<(), String>(())
    }
}

fn options(pool: &PgPool) -> WorkerOptions {
    WorkerOptions::default()
        .pg_pool(pool.clone())
        .concurrency(500)
        .poll_interval(Duration::from_millis(5))
        .complete_job_batch_delay(Duration::from_millis(5))
        .local_queue(LocalQueueConfig::default().with_size(5_000))
        .listen_os_shutdown_signals(false)
        .define_job::<Nothing>()
        .define_job::<Timed>()
}

fn start(worker: Worker) -> (Arc<Worker>, tokio::task::JoinHandle<()>) {
    let worker = Arc::new(worker);
    let running = Arc::clone(&worker);
    let task = tokio::spawn(async move { running.run().await.expect("a worker that runs") });
    (worker, task)
}

#[tokio::main]
async fn main() -> Result<()> {
    let pool = PgPoolOptions::new()
        .max_connections(20)
        .connect(&protocol::url())
        .await?;
    let utils = WorkerUtils::new(pool.clone(), "graphile_worker".to_string());
    let (verb, numbers) = protocol::verb();
    let spec = JobSpec::default();
    match (verb.as_str(), numbers.as_slice()) {
        ("setup", []) => {
            utils.migrate().await?;
            protocol::say_setup(
                "0.14.1",
                "local queue of 5,000, completions batched for 5 ms, 500 at once, polling every 5 ms: as in its own benchmark",
            );
        }
        ("enqueue", &[jobs]) => bulk(&utils, jobs, 10_000).await?,
        ("bulk", &[jobs, batch]) => bulk(&utils, jobs, batch).await?,
        ("single", &[jobs]) => {
            let began = Instant::now();
            for _ in 0..jobs {
                utils.add_job(Nothing::new(), spec.clone()).await?;
            }
            protocol::say_rate(jobs, began);
        }
        ("drain", &[jobs]) => {
            let performed = Performed::default();
            let (cpu, began) = (protocol::cpu_us(), Instant::now());
            let worker = options(&pool).add_extension(performed.clone()).init().await?;
            let (worker, task) = start(worker);
            while performed.0.load(Ordering::Relaxed) < jobs {
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
            while left(&pool).await? > 0 {
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
            protocol::say_drain(jobs, began.elapsed(), cpu);
            worker.request_shutdown();
            task.await?;
        }
        ("latency", &[samples]) => {
            let (sender, mut begun) = mpsc::unbounded_channel();
            let worker = options(&pool).add_extension(Begun(sender)).init().await?;
            let (worker, task) = start(worker);
            tokio::time::sleep(Duration::from_secs(1)).await;
            let mut all = Vec::new();
            for n in 0..samples {
                tokio::time::sleep(protocol::pause(n)).await;
                let called = Instant::now();
                utils
                    .add_job(
                        Timed {
                            padding: protocol::padding(),
                        },
                        spec.clone(),
                    )
                    .await?;
                let returned = Instant::now();
                let began = begun.recv().await.expect("a job that begins");
                all.push(Sample {
                    called,
                    returned,
                    began,
                });
            }
            protocol::say_latency(&all);
            worker.request_shutdown();
            task.await?;
        }
        ("idle", &[seconds]) => {
            let (worker, task) = start(options(&pool).init().await?);
            tokio::time::sleep(protocol::SETTLE).await;
            let cpu = protocol::cpu_us();
            tokio::time::sleep(Duration::from_secs(seconds as u64)).await;
            protocol::say_idle(protocol::cpu_us() - cpu);
            worker.request_shutdown();
            task.await?;
        }
        _ => anyhow::bail!("unknown verb {verb} {numbers:?}"),
    }
    Ok(())
}

async fn bulk(utils: &WorkerUtils, jobs: usize, batch: usize) -> Result<()> {
    let spec = JobSpec::default();
    let began = Instant::now();
    for at in (0..jobs).step_by(batch) {
        let all: Vec<(Nothing, &JobSpec)> = (at..jobs.min(at + batch))
            .map(|_| (Nothing::new(), &spec))
            .collect();
        utils.add_jobs::<Nothing>(&all).await?;
    }
    protocol::say_rate(jobs, began);
    Ok(())
}

async fn left(pool: &PgPool) -> Result<i64> {
    Ok(
        sqlx::query_scalar("SELECT count(*) FROM graphile_worker._private_jobs")
            .fetch_one(pool)
            .await?,
    )
}
