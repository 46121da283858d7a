use crate::run::{complete_with, with_type};
use crate::{JobConnection, Ticket};
use anyhow::Context as _;
use serde::Serialize;
use std::any::Any;
use std::fmt;
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

/// A future of any type.
pub type BoxFuture<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

/// What is done with a connection, away from the threads of the futures.
pub type WorkWithConnection = Box<dyn FnOnce(&mut dyn Any) + Send>;

/// What an async job needs of its worker, which implements it over its pool and its runtime.
pub trait AsyncConnections: Send + Sync {
    /// Gets a connection and calls `work` with it, once, where it may wait. A panic of `work` comes out of the future.
    ///
    /// # Errors
    /// Where no connection can be had.
    fn with(&self, work: WorkWithConnection) -> BoxFuture<'_, anyhow::Result<()>>;

    /// The name of the connections' type, if it is known, for messages.
    fn type_name(&self) -> Option<&'static str> {
        None
    }

    /// Whether the worker is stopping.
    fn is_stopping(&self) -> bool;

    /// Ends when the worker is stopping.
    fn stopping(&self) -> BoxFuture<'_, ()>;
}

/// One attempt to perform an async job, as the job sees it. A clone is the same attempt, such as for a task that the job
/// starts.
pub struct RunAsync<X>(Arc<Inner<X>>);

struct Inner<X> {
    context: Arc<X>,
    ticket: Ticket,
    connections: Arc<dyn AsyncConnections>,
    /// How many transactions that complete the job are open.
    completing: AtomicUsize,
    recorded: AtomicBool,
    discards: AtomicBool,
}

impl<X> RunAsync<X> {
    /// For workers, and for tests of a job.
    pub fn new(context: Arc<X>, ticket: Ticket, connections: Arc<dyn AsyncConnections>) -> Self {
        RunAsync(Arc::new(Inner {
            context,
            ticket,
            connections,
            completing: AtomicUsize::new(0),
            recorded: AtomicBool::new(false),
            discards: AtomicBool::new(false),
        }))
    }

    /// The same of a job that is to be deleted when it has completed: see
    /// [`PerformAsync::DISCARD_COMPLETED`](crate::PerformAsync::DISCARD_COMPLETED).
    pub fn discarding(self, discards: bool) -> Self {
        self.0.discards.store(discards, Ordering::Release);
        self
    }

    /// What the worker shares with its jobs.
    pub fn context(&self) -> &X {
        &self.0.context
    }

    /// The job's id. It stays the same in every attempt, so it serves as an idempotency key for other services.
    pub fn job_id(&self) -> i64 {
        self.0.ticket.job_id
    }

    /// The number of this attempt among those that are charged, from 1.
    pub fn attempt(&self) -> i32 {
        self.0.ticket.charged()
    }

    /// Whether a failure of this attempt ends the job.
    pub fn is_last_attempt(&self) -> bool {
        self.0.ticket.charged() >= self.0.ticket.max_attempts
    }

    /// Whether the worker is stopping: a long job should come to an end, or [`snooze`](crate::snooze()).
    pub fn is_stopping(&self) -> bool {
        self.0.connections.is_stopping()
    }

    /// Ends when the worker is stopping: to be waited for beside the job's own work.
    pub async fn stopping(&self) {
        self.0.connections.stopping().await;
    }

    /// Whether this attempt has recorded its completion by [`transaction`](Self::transaction).
    pub fn is_recorded(&self) -> bool {
        self.0.recorded.load(Ordering::Acquire)
    }

    /// Whether this attempt has recorded its completion, or may be about to.
    #[doc(hidden)]
    pub fn may_be_recorded(&self) -> bool {
        // In this order: what completes is counted until it has said so.
        self.0.completing.load(Ordering::Acquire) > 0 || self.is_recorded()
    }

    /// Calls `work` with a connection of the worker's pool, on a thread where it may wait. Jobs that want one wait for their
    /// turn without holding a thread. Say the connection's type in the closure:
    /// `run.connection(move |conn: &mut PgConnection| …).await`.
    ///
    /// What has begun comes to its end, even if this future is dropped.
    ///
    /// # Errors
    /// What `work` gives; where the pool has no connection in time; where the worker's connections are of another type,
    /// which ends the job as failed for good, since no other attempt could succeed.
    ///
    /// # Panics
    /// When `work` does.
    pub async fn connection<C, T>(
        &self,
        work: impl FnOnce(&mut C) -> anyhow::Result<T> + Send + 'static,
    ) -> anyhow::Result<T>
    where
        C: Any,
        T: Send + 'static,
    {
        let result = Arc::new(Mutex::new(None));
        let place = Arc::clone(&result);
        let (job_id, has) = (self.job_id(), self.0.connections.type_name());
        let work: WorkWithConnection = Box::new(move |conn| {
            let done = with_type(conn, job_id, has, work);
            *place.lock().unwrap_or_else(PoisonError::into_inner) = Some(done);
        });
        self.0.connections.with(work).await?;
        let result = result.lock().unwrap_or_else(PoisonError::into_inner).take();
        result.context("the worker gave no connection")?
    }

    /// Runs `work` in a transaction that also completes the job, as [`Run::transaction`](crate::Run::transaction) does: the
    /// job's own writes and its completion are committed together or not at all. It runs on a thread where it may wait, so
    /// it owns what it uses; a clone of the run may go into it. Give the value on as the job's output.
    ///
    /// ```
    /// # #[cfg(feature = "sqlite")]
    /// # mod example {
    /// # use diesel::prelude::*;
    /// # use job_core::{PerformAsync, RunAsync};
    /// # #[derive(serde::Serialize, serde::Deserialize)]
    /// # struct Pay { account: i64 }
    /// # pub struct Bank;
    /// # impl Bank { async fn balance(&self, _: i64) -> anyhow::Result<i64> { Ok(7) } }
    /// # impl PerformAsync for Pay {
    /// #     const KIND: &'static str = "pay"; type Context = Bank; type Output = i64;
    /// async fn perform(&self, run: &RunAsync<Bank>) -> anyhow::Result<i64> {
    ///     let cents = run.context().balance(self.account).await?;
    ///     let account = self.account;
    ///     run.transaction(move |conn: &mut SqliteConnection| {
    ///         diesel::sql_query("UPDATE accounts SET cents = ? WHERE id = ?")
    ///             .bind::<diesel::sql_types::BigInt, _>(cents)
    ///             .bind::<diesel::sql_types::BigInt, _>(account)
    ///             .execute(conn)?;
    ///         Ok(cents)
    ///     })
    ///     .await
    /// }
    /// # }
    /// # }
    /// ```
    ///
    /// What has begun comes to its end, even if this future is dropped, at a timeout for instance: then either this
    /// transaction stands or the failure, never both.
    ///
    /// # Errors
    /// As [`Run::transaction`](crate::Run::transaction).
    ///
    /// # Panics
    /// When `work` does.
    pub async fn transaction<C, T>(
        &self,
        work: impl FnOnce(&mut C) -> anyhow::Result<T> + Send + 'static,
    ) -> anyhow::Result<T>
    where
        X: Send + Sync + 'static,
        C: JobConnection + 'static,
        T: Serialize + Send + 'static,
    {
        let run = self.clone();
        self.connection(move |conn: &mut C| {
            let _completing = Completing::new(&run.0.completing);
            let value = complete_with(conn, &run.0.ticket, run.0.discards.load(Ordering::Acquire), work)?;
            run.0.recorded.store(true, Ordering::Release);
            Ok(value)
        })
        .await
    }
}

/// Counts a transaction that is open, until it has ended in any way.
struct Completing<'a>(&'a AtomicUsize);

impl<'a> Completing<'a> {
    fn new(count: &'a AtomicUsize) -> Self {
        count.fetch_add(1, Ordering::AcqRel);
        Completing(count)
    }
}

impl Drop for Completing<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::AcqRel);
    }
}

impl<X> Clone for RunAsync<X> {
    fn clone(&self) -> Self {
        RunAsync(Arc::clone(&self.0))
    }
}

impl<X> fmt::Debug for RunAsync<X> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RunAsync")
            .field("ticket", &self.0.ticket)
            .finish_non_exhaustive()
    }
}
