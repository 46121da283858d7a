mod start;

use crate::WorkerError;
use crate::connections::Manager;
use crate::futures::Setup;
use crate::options::Options;
use crate::registry::Registry;
use crate::report::Report;
use crate::signals::Signals;
use crate::stop::StopHandle;
use diesel::r2d2::{ConnectionManager, Pool, R2D2Connection};
use job_core::{JobConnection, Perform};
use std::time::Duration;

/// A worker that is being set up: what it can perform, on which queues, with how many threads.
#[must_use = "a worker does nothing before run()"]
pub struct Worker<C: R2D2Connection + 'static, X> {
    manager: Manager<C>,
    pool: Option<Pool<ConnectionManager<C>>>,
    context: X,
    registry: Registry<X>,
    /// The same for async jobs.
    pub(crate) setup: Setup<X>,
    options: Options,
    stop: StopHandle,
}

impl<C, X> Worker<C, X>
where
    C: JobConnection + R2D2Connection + 'static,
    X: Send + Sync + 'static,
{
    /// A worker on the database that the manager connects to, with what it shares with its jobs (`()` for nothing).
    ///
    /// It takes a manager and not a pool, since its own threads each keep a connection: a heartbeat must never wait for a
    /// job to give one back. Jobs get theirs from a pool that is made when the first one asks.
    ///
    /// A connection that is cut is replaced within seconds. One whose other end has vanished without a word is noticed when
    /// the system gives it up, which may take many minutes; on PostgreSQL, `keepalives_idle` and `tcp_user_timeout` in the
    /// URL make it sooner.
    pub fn new(manager: ConnectionManager<C>, context: X) -> Self {
        Worker {
            manager: Manager::new(manager),
            pool: None,
            context,
            registry: Registry::new(),
            setup: Setup::new(),
            options: Options::default(),
            stop: StopHandle::new(),
        }
    }

    /// Adds a kind of job. Only registered kinds are claimed; the others wait for a worker that has them.
    pub fn register<J: Perform<Context = X>>(mut self) -> Self {
        self.registry.add::<C, J>();
        self
    }

    /// The queues, the most important first: a later one gets its turn when the former ones have nothing. `default` alone
    /// if not said.
    pub fn queues<Q: Into<String>>(mut self, queues: impl IntoIterator<Item = Q>) -> Self {
        self.options.queues = queues.into_iter().map(Into::into).collect();
        self
    }

    /// How many jobs to perform at once, each on a thread of its own; 8 if not said. Async jobs do not count.
    pub fn threads(mut self, threads: usize) -> Self {
        self.options.threads = threads;
        self
    }

    /// A pool of the app's in place of the worker's own, for the connections that jobs ask for. It may be smaller than the
    /// number of threads; jobs then wait for each other.
    pub fn pool(mut self, pool: Pool<ConnectionManager<C>>) -> Self {
        self.pool = Some(pool);
        self
    }

    /// The size of the worker's own pool for jobs; as many as threads if not said, or 4 where all kinds are async. It may be
    /// smaller: a job then waits up to 30 seconds for a connection, and fails if there is none by then; async jobs wait for
    /// their turn before that.
    pub fn pool_size(mut self, size: u32) -> Self {
        self.options.pool_size = size;
        self
    }

    /// How often to look for new jobs while there are none, give or take a quarter: if not said, 2 seconds where the
    /// database notifies, else 200 ms.
    pub fn poll(mut self, interval: Duration) -> Self {
        self.options.poll = Some(interval);
        self
    }

    /// How often to show that this worker lives, give or take a quarter; 5 seconds if not said.
    pub fn heartbeat(mut self, interval: Duration) -> Self {
        self.options.heartbeat = interval;
        self
    }

    /// How long a worker may be silent before its jobs are taken back; 30 seconds if not said. At least three heartbeats, and
    /// the same for all workers of a database.
    pub fn rescue_after(mut self, age: Duration) -> Self {
        self.options.rescue_after = age;
        self
    }

    /// How long a stop waits for running jobs, and for their outcomes to be recorded; 25 seconds if not said. What still runs
    /// then is left to rescue, and what has ended gets 3 seconds more to be recorded. `Duration::MAX` waits for ever.
    pub fn grace(mut self, time: Duration) -> Self {
        self.options.grace = time;
        self
    }

    /// How long finished jobs are kept, `None` for ever; 7 days if not said.
    pub fn prune_after(mut self, age: impl Into<Option<Duration>>) -> Self {
        self.options.prune_after = age.into();
        self
    }

    /// How long a statement of the worker's own may take, and wait for a lock; 30 seconds if not said, a day at most.
    pub fn statement_timeout(mut self, limit: Duration) -> Self {
        self.options.statement_timeout = limit;
        self
    }

    /// Whether to listen for notifications where the database has them; if not, the worker polls only.
    pub fn listen(mut self, listen: bool) -> Self {
        self.options.listen = listen;
        self
    }

    /// Whether a proxy that pools transactions, such as PgBouncer, stands between the worker and its database; `false` if not
    /// said. The worker then prepares no statements, sets nothing on sessions and listens to nothing: it polls, and each of
    /// its steps is one transaction. Where a direct connection can be had, that is quicker.
    ///
    /// Jobs get connections of the worker's pool that prepare nothing either; use them in transactions, such as
    /// [`Run::transaction`](job_core::Run::transaction). A pool of the app's must be set up so by the app.
    pub fn pooler(mut self, pooler: bool) -> Self {
        self.options.pooler = pooler;
        self
    }

    /// Whether [`run`](Self::run) stops on SIGTERM and SIGINT; a program that handles them itself says no and uses
    /// [`handle`](Self::handle).
    pub fn stop_on_signals(mut self, signals: bool) -> Self {
        self.options.signals = signals;
        self
    }

    /// Stops the worker from another thread, or from a job.
    ///
    /// ```
    /// # #[cfg(feature = "sqlite")] {
    /// # use diesel::prelude::*;
    /// # use diesel::r2d2::ConnectionManager;
    /// # use job_core::{Perform, Run};
    /// # use job_worker::{StopHandle, Worker};
    /// # #[derive(serde::Serialize, serde::Deserialize)]
    /// # struct Last;
    /// # impl Perform for Last {
    /// #     const KIND: &'static str = "last"; type Context = (); type Output = ();
    /// #     fn perform(&self, _: &Run<'_, ()>) -> anyhow::Result<()> { Ok(()) }
    /// # }
    /// # let folder = std::env::temp_dir().join(format!("gatun-doc-handle-{}", std::process::id()));
    /// # std::fs::create_dir_all(&folder).unwrap();
    /// # let url = folder.join("jobs.sqlite3").to_str().unwrap().to_owned();
    /// # job_core::migrate(&mut SqliteConnection::establish(&url).unwrap()).unwrap();
    /// let worker = Worker::new(ConnectionManager::<SqliteConnection>::new(&url), ()).register::<Last>();
    /// let handle = worker.handle();
    /// let thread = std::thread::spawn(|| worker.run());
    /// handle.stop(); // Called once more, it would not wait for running jobs.
    /// let report = thread.join().unwrap().unwrap();
    /// assert_eq!(report.abandoned, 0);
    /// # std::fs::remove_dir_all(&folder).unwrap();
    /// # }
    /// ```
    pub fn handle(&self) -> StopHandle {
        self.stop.clone()
    }

    /// Works until SIGTERM, SIGINT or the [`handle`](Self::handle) says stop; then hands back what is not started, gives
    /// what runs the grace time, and records all outcomes. A second signal does not wait.
    ///
    /// # Errors
    /// Where it cannot start: see [`WorkerError`]. Once it has started, it heals itself.
    pub fn run(self) -> Result<Report, WorkerError> {
        // Before anything else: a signal during the start must not be lost.
        let _signals = if self.options.signals {
            Some(Signals::watch(self.stop.clone())?)
        } else {
            None
        };
        self.work(false)
    }

    /// Works until there is nothing to do now: no job of its kinds and queues is new, due or in its hands. For tests and
    /// scripts; jobs that are scheduled for later stay.
    ///
    /// It heeds [`handle`](Self::handle), but no signals: those end the process as they do any other.
    ///
    /// # Errors
    /// As [`run`](Self::run).
    pub fn run_until_idle(self) -> Result<Report, WorkerError> {
        self.work(true)
    }
}
