//! What a worker can be told about async jobs.

use super::kind::{PerformKind, perform_kind};
use super::{Futures, Host};
use crate::connections::JobPool;
use crate::registry::{Home, Registry};
use crate::{Worker, WorkerError};
use crossbeam_channel::{RecvTimeoutError, bounded};
use diesel::r2d2::R2D2Connection;
use job_core::{JobConnection, PerformAsync};
use std::collections::HashMap;
use std::num::NonZero;
use std::panic::catch_unwind;
use std::sync::Arc;
use std::thread::available_parallelism;
use std::time::Duration;
use tokio::runtime::{Builder, Handle, Runtime, RuntimeFlavor};
use tokio::sync::watch;
use tokio::time::sleep;

/// How many jobs at once, if nobody says: each may hold a socket, and a process may usually open 1,024 files.
const JOBS: usize = 500;

/// The most threads of the worker's own runtime, if nobody says.
const MOST_THREADS: usize = 4;

/// How long the app's runtime has to start a first task.
const PATIENCE: Duration = Duration::from_secs(10);

/// The async kinds that a worker knows, and the runtime that it is to use.
pub(crate) struct Setup<X> {
    kinds: HashMap<&'static str, PerformKind<X>>,
    duplicate: Option<&'static str>,
    homes: Vec<Home>,
    jobs: usize,
    threads: Option<usize>,
    runtime: Option<Handle>,
}

impl<X: Send + Sync + 'static> Setup<X> {
    pub(crate) fn new() -> Self {
        Setup {
            kinds: HashMap::new(),
            duplicate: None,
            homes: Vec::new(),
            jobs: JOBS,
            threads: None,
            runtime: None,
        }
    }

    fn add<C: JobConnection, J: PerformAsync<Context = X>>(&mut self) {
        if self.kinds.insert(J::KIND, perform_kind::<C, J>).is_some() {
            self.duplicate = Some(J::KIND);
        }
        self.homes.push((J::KIND, J::QUEUE));
    }

    /// The kinds with the queues that their jobs go to.
    pub(crate) fn homes(&self) -> &[Home] {
        &self.homes
    }

    pub(crate) fn kinds(&self) -> Vec<String> {
        self.kinds.keys().map(|kind| (*kind).to_owned()).collect()
    }

    /// A name that two kinds have, the others included.
    pub(crate) fn duplicate(&self, registry: &Registry<X>) -> Option<&'static str> {
        let mut kinds = self.kinds.keys().copied();
        self.duplicate.or_else(|| kinds.find(|kind| registry.has(kind)))
    }

    pub(crate) fn check(&self) -> Result<(), WorkerError> {
        if self.kinds.is_empty() {
            return Ok(());
        }
        if self.jobs == 0 {
            return Err(WorkerError::NoAsync("async_jobs"));
        }
        if self.threads == Some(0) {
            return Err(WorkerError::NoAsync("async_threads"));
        }
        Ok(())
    }

    /// Starts the runtime, unless there is one or no need of one.
    pub(crate) fn start<C>(self, pool: &Arc<JobPool<C>>) -> Result<Option<Futures<X>>, WorkerError>
    where
        C: JobConnection + R2D2Connection + 'static,
    {
        if self.kinds.is_empty() {
            return Ok(None);
        }
        let (handle, own) = match self.runtime {
            Some(handle) => {
                try_out(&handle)?;
                (handle, None)
            }
            None => {
                let runtime = runtime(self.threads)?;
                (runtime.handle().clone(), Some(runtime))
            }
        };
        let (stopping, told) = watch::channel(false);
        let host = Arc::new(Host::new(Arc::clone(pool), told));
        Ok(Some(Futures::new(
            self.kinds,
            self.jobs,
            host,
            stopping,
            (handle, own),
        )))
    }
}

/// Whether a runtime performs what it is given, timers included; else each job would find that out for itself.
fn try_out(handle: &Handle) -> Result<(), WorkerError> {
    if handle.runtime_flavor() == RuntimeFlavor::CurrentThread {
        return Err(WorkerError::Runtime("has no threads of its own"));
    }
    let (tell, told) = bounded(1);
    handle.spawn(async move {
        // Where there are no timers, this panics.
        let has_timers = catch_unwind(|| drop(sleep(Duration::ZERO))).is_ok();
        let _ = tell.send(has_timers);
    });
    match told.recv_timeout(PATIENCE) {
        Ok(true) => Ok(()),
        Ok(false) => Err(WorkerError::Runtime("has no timers")),
        Err(RecvTimeoutError::Disconnected) => Err(WorkerError::Runtime("has ended")),
        Err(RecvTimeoutError::Timeout) => Err(WorkerError::Runtime("is too busy to start a task")),
    }
}

fn runtime(threads: Option<usize>) -> std::io::Result<Runtime> {
    let cores = available_parallelism().map_or(1, NonZero::get);
    Builder::new_multi_thread()
        .worker_threads(threads.unwrap_or(cores.min(MOST_THREADS)))
        .thread_name("gatun-async")
        .enable_all()
        .build()
}

impl<C, X> Worker<C, X>
where
    C: JobConnection + R2D2Connection + 'static,
    X: Send + Sync + 'static,
{
    /// Adds a kind of async job; needs the feature `tokio`. A worker may have kinds of both sorts, which do not wait for
    /// each other: those of [`register`](Self::register) have their threads, these are futures, many at once. Each sort has
    /// its own fetcher, with a connection.
    pub fn register_async<J: PerformAsync<Context = X>>(mut self) -> Self {
        self.setup.add::<C, J>();
        self
    }

    /// How many async jobs to perform at once; 500 if not said. A job counts until its outcome is recorded. Each may hold a
    /// socket or two: see how many files a process may open (`ulimit -n`) before you raise it.
    pub fn async_jobs(mut self, jobs: usize) -> Self {
        self.setup.jobs = jobs;
        self
    }

    /// How many threads the worker's own runtime has for async jobs; as many as cores if not said, 4 at most.
    pub fn async_threads(mut self, threads: usize) -> Self {
        self.setup.threads = Some(threads);
        self
    }

    /// A runtime of the app's in place of the worker's own, for the async jobs. It must have timers (`enable_all`), threads
    /// of its own (the flavour `multi_thread`), and outlive the worker; the worker ends with [`WorkerError::Runtime`] if not.
    ///
    /// [`run`](Self::run) blocks: within an async program call it in a thread, or in `spawn_blocking`.
    pub fn runtime(mut self, handle: Handle) -> Self {
        self.setup.runtime = Some(handle);
        self
    }
}
