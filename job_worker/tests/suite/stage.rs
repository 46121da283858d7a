//! Jobs whose work a test says in a closure, and workers for them.

use super::{Conn, Db};
use job_core::{Job, NewJob, Perform, Run, Status};
use job_test::eventually;
use job_worker::{Report, StopHandle, Worker, WorkerError};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::Duration;

type Body = dyn Fn(&str, &Run<'_, Stage>) -> anyhow::Result<Value> + Send + Sync;

/// What the steps of a test do.
pub(crate) struct Stage(Box<Body>);

impl Stage {
    pub(crate) fn new(
        body: impl Fn(&str, &Run<'_, Stage>) -> anyhow::Result<Value> + Send + Sync + 'static,
    ) -> Self {
        Stage(Box::new(body))
    }
}

/// A job with a name, by which the stage knows what it is to do.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Step(String);

impl Perform for Step {
    const KIND: &'static str = "step";
    const MAX_ATTEMPTS: i32 = 3;
    type Context = Stage;
    type Output = Value;

    fn perform(&self, run: &Run<'_, Stage>) -> anyhow::Result<Value> {
        (run.context().0)(&self.0, run)
    }

    fn retry_delay(_attempt: i32) -> Duration {
        Duration::ZERO
    }
}

/// A job of a kind that no worker of these tests has.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Unknown;

impl Perform for Unknown {
    const KIND: &'static str = "unknown";
    type Context = Stage;
    type Output = ();

    fn perform(&self, _run: &Run<'_, Stage>) -> anyhow::Result<()> {
        unreachable!("nobody has registered it")
    }
}

pub(crate) fn step(name: impl Into<String>) -> NewJob {
    Step(name.into()).job()
}

/// A worker whose steps do what the closure says. It looks often, so that tests are quick.
pub(crate) fn worker(
    db: &Db,
    body: impl Fn(&str, &Run<'_, Stage>) -> anyhow::Result<Value> + Send + Sync + 'static,
) -> Worker<Conn, Stage> {
    Worker::new(db.manager(), Stage::new(body))
        .register::<Step>()
        .threads(4)
        .poll(Duration::from_millis(20))
        .stop_on_signals(false)
}

/// A worker in a thread.
pub(crate) struct Started {
    pub(crate) handle: StopHandle,
    thread: Option<JoinHandle<Result<Report, WorkerError>>>,
}

pub(crate) fn start<X: Send + Sync + 'static>(worker: Worker<Conn, X>) -> Started {
    let handle = worker.handle();
    let thread = std::thread::spawn(move || worker.run());
    Started {
        handle,
        thread: Some(thread),
    }
}

impl Started {
    /// Asks it to stop, and waits for its end.
    pub(crate) fn stop(self) -> Report {
        self.handle.stop();
        self.join()
    }

    /// Waits for its end.
    pub(crate) fn join(mut self) -> Report {
        let thread = self.thread.take().unwrap();
        thread.join().unwrap().unwrap()
    }
}

impl Drop for Started {
    /// A test that fails must not leave a worker behind.
    fn drop(&mut self) {
        self.handle.stop();
        self.handle.stop();
    }
}

/// Notes what happens, in order.
#[derive(Clone, Default)]
pub(crate) struct Notes(Arc<Mutex<Vec<String>>>);

impl Notes {
    pub(crate) fn add(&self, note: impl Into<String>) {
        self.0.lock().unwrap().push(note.into());
    }

    pub(crate) fn all(&self) -> Vec<String> {
        self.0.lock().unwrap().clone()
    }
}

pub(crate) fn find(db: &Db, id: i64) -> Job {
    Job::find(&mut db.connect(), id).unwrap()
}

pub(crate) fn await_status(db: &Db, id: i64, status: Status) {
    let conn = &mut db.connect();
    eventually(&format!("job {id} is {status}"), || {
        Job::find(conn, id).unwrap().status() == status
    });
}

/// Makes all that is scheduled due.
pub(crate) fn make_due(db: &Db) {
    db.execute("UPDATE jobs_scheduled SET run_at = (SELECT created_at FROM jobs WHERE id = job_id)");
}

/// Enqueues another step once a job is gone.
pub(crate) fn eventually_enqueued_after_gone(db: &Db, id: i64) -> i64 {
    let conn = &mut db.connect();
    eventually("the job is gone", || Job::find(conn, id).is_err());
    step("next").enqueue(conn).unwrap().id
}
