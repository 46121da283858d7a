//! Async jobs whose work a test says in a closure, and workers for them.

use super::{Conn, Db};
use crossbeam_channel::Sender;
use diesel::r2d2::ConnectionManager;
use job_core::{BoxFuture, NewJob, Perform, PerformAsync, Run, RunAsync};
use job_worker::Worker;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use std::sync::Arc;
use std::time::Duration;

pub(crate) type Performed = BoxFuture<'static, anyhow::Result<Value>>;
type Body = dyn Fn(String, RunAsync<Scene>) -> Performed + Send + Sync;

/// What the calls of a test do.
pub(crate) struct Scene(Box<Body>);

/// An async job with a name, by which the scene knows what it is to do.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Call(String);

impl PerformAsync for Call {
    const KIND: &'static str = "call";
    const MAX_ATTEMPTS: i32 = 3;
    type Context = Scene;
    type Output = Value;

    async fn perform(&self, run: &RunAsync<Scene>) -> anyhow::Result<Value> {
        (run.context().0)(self.0.clone(), run.clone()).await
    }

    fn retry_delay(_attempt: i32) -> Duration {
        Duration::ZERO
    }
}

/// The same with a limit, and one attempt.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Hasty(String);

impl PerformAsync for Hasty {
    const KIND: &'static str = "hasty";
    const MAX_ATTEMPTS: i32 = 1;
    const TIMEOUT: Option<Duration> = Some(Duration::from_millis(30));
    type Context = Scene;
    type Output = Value;

    async fn perform(&self, run: &RunAsync<Scene>) -> anyhow::Result<Value> {
        (run.context().0)(self.0.clone(), run.clone()).await
    }
}

/// A job on a thread, beside them.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Plain;

impl Perform for Plain {
    const KIND: &'static str = "plain";
    type Context = Scene;
    type Output = ();

    fn perform(&self, _: &Run<'_, Scene>) -> anyhow::Result<()> {
        Ok(())
    }
}

pub(crate) fn call(name: impl Into<String>) -> NewJob {
    Call(name.into()).job()
}

pub(crate) fn hasty(name: &str) -> NewJob {
    Hasty(name.to_owned()).job()
}

/// A worker of async jobs that do what the closure says.
pub(crate) fn caller<F>(
    db: &Db,
    body: impl Fn(String, RunAsync<Scene>) -> F + Send + Sync + 'static,
) -> Worker<Conn, Scene>
where
    F: Future<Output = anyhow::Result<Value>> + Send + 'static,
{
    caller_at(db.manager(), body)
}

pub(crate) fn caller_at<F>(
    manager: ConnectionManager<Conn>,
    body: impl Fn(String, RunAsync<Scene>) -> F + Send + Sync + 'static,
) -> Worker<Conn, Scene>
where
    F: Future<Output = anyhow::Result<Value>> + Send + 'static,
{
    let body = Box::new(move |name, run| -> Performed { Box::pin(body(name, run)) });
    Worker::new(manager, Scene(body))
        .register_async::<Call>()
        .register_async::<Hasty>()
        .async_threads(2)
        .poll(Duration::from_millis(20))
        .heartbeat(Duration::from_millis(50))
        .stop_on_signals(false)
}

/// Never ends; it tells when it begins and when it is dropped.
pub(crate) async fn forever(tell: Sender<&'static str>) -> anyhow::Result<Value> {
    struct Tell(Sender<&'static str>);
    impl Drop for Tell {
        fn drop(&mut self) {
            let _ = self.0.send("dropped");
        }
    }
    tell.send("begun")?;
    let _tell = Tell(tell);
    std::future::pending::<()>().await;
    Ok(json!(null))
}

/// A gate that many wait for.
#[derive(Clone, Debug)]
pub(crate) struct Gate(Arc<tokio::sync::Semaphore>);

impl Gate {
    pub(crate) fn closed() -> Self {
        Gate(Arc::new(tokio::sync::Semaphore::new(0)))
    }

    pub(crate) fn open(&self) {
        self.0.close();
    }

    pub(crate) async fn pass(&self) {
        assert!(
            self.0.acquire().await.is_err(),
            "it is opened by closing the semaphore"
        );
    }
}
