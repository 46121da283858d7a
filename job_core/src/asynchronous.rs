//! The verbs on connections of [`diesel_async`], with the feature `diesel_async`: for web apps that talk to PostgreSQL
//! through an `AsyncPgConnection`, alone or from a pool of `deadpool` or `bb8`.
//!
//! Each verb that an app needs has a twin whose name ends in `_async`. It takes an [`AsyncJobConnection`] in place of a
//! [`JobConnection`](crate::JobConnection), gives a future that is `Send`, and is the same in all else: the same
//! statements, the caller's transaction, the same errors, the same notification of the workers.
//!
//! | on Diesel's connections | on diesel_async's |
//! |---|---|
//! | [`Perform::enqueue`], [`NewJob::enqueue`] | [`Perform::enqueue_async`], [`NewJob::enqueue_async`] |
//! | [`Job::enqueue_all`] | [`Job::enqueue_all_async`] |
//! | [`Job::find`], [`Job::failures`] | [`Job::find_async`], [`Job::failures_async`] |
//! | [`Job::filter`] … [`load`](JobFilter::load) | [`Job::filter`] … [`load_async`](JobFilter::load_async) |
//! | [`Job::counts`], [`Job::counts_in`] | [`Job::counts_async`], [`Job::counts_in_async`] |
//! | [`Job::cancel`], [`Job::discard`], [`Job::retry`] | [`Job::cancel_async`], [`Job::discard_async`], [`Job::retry_async`] |
//!
//! ```
//! use diesel_async::pooled_connection::deadpool::Pool;
//! use diesel_async::{AsyncConnection, AsyncPgConnection, RunQueryDsl};
//! use job_core::{Job, Perform, Status};
//! # use job_core::Run;
//! # #[derive(serde::Serialize, serde::Deserialize)] struct AuthorizeCard { order_id: i64 }
//! # impl Perform for AuthorizeCard {
//! #     const KIND: &'static str = "authorize_card"; type Context = (); type Output = String;
//! #     fn perform(&self, _: &Run<'_, ()>) -> anyhow::Result<String> { Ok(String::new()) }
//! # }
//!
//! /// In a request handler: the order and its job, in one transaction.
//! async fn place_order(pool: &Pool<AsyncPgConnection>, order_id: i64) -> anyhow::Result<i64> {
//!     let mut conn = pool.get().await?;
//!     let job = conn
//!         .transaction(async |conn| {
//!             let order = diesel::sql_query("INSERT INTO orders VALUES ($1)");
//!             order.bind::<diesel::sql_types::BigInt, _>(order_id).execute(conn).await?;
//!             anyhow::Ok(AuthorizeCard { order_id }.enqueue_async(conn).await?)
//!         })
//!         .await?;
//!     Ok(job.id)
//! }
//!
//! /// In the handler of the status page.
//! async fn status(pool: &Pool<AsyncPgConnection>, job_id: i64) -> anyhow::Result<Status> {
//!     let mut conn = pool.get().await?;
//!     Ok(Job::find_async(&mut conn, job_id).await?.status())
//! }
//! # fn is_send(_: impl Send) {}
//! # fn check(pool: &Pool<AsyncPgConnection>) { is_send(place_order(pool, 17)); is_send(status(pool, 17)); }
//! ```
//!
//! Workers have no twin: they are processes with threads of their own. Nor has [`migrate`](crate::migrate): call it when
//! the app starts, before the runtime does, with a `PgConnection`; or in `spawn_blocking` with diesel_async's
//! `AsyncConnectionWrapper`, which every verb of this crate takes, and which needs no libpq.
//!
//! # Futures that are dropped
//!
//! A future that is dropped before its end, by a `timeout`, a `select!` or a browser that hangs up, stops where it stands.
//! Whether its last statement was still done, nobody is told. But a transaction that it was in the middle of **stays open
//! on the connection**: diesel_async sends no ROLLBACK for it. On a connection that is used again all the same, whatever
//! follows is in that transaction, and is lost with it.
//!
//! - **A job is whole, or it is not there.** Where a verb needs several statements, they are in a transaction or a
//!   savepoint of its own. If its future is dropped in there, the connection's transaction is marked as broken: every verb
//!   of Gatun and every `transaction` on this connection gives
//!   [`BrokenTransactionManager`](diesel::result::Error::BrokenTransactionManager) from then on, and a transaction of yours
//!   around it cannot be committed any more. Take another connection, and run your whole transaction again. (Single
//!   statements of your own are not refused; they would be lost with the rest.)
//! - **The pools `deadpool` and `bb8`** of diesel_async never hand out a connection that is marked as broken or has
//!   a transaction open, whoever opened it; they close it, and the server rolls back. So take a connection from the pool
//!   *inside* the future that may be dropped, as above, that it goes back along with it.
//! - **A connection of your own** that outlives the future is yours to watch: after a `transaction` of yours that was
//!   dropped, do not use it again.
//! - **Repeat with care.** A verb whose future was dropped may have been done or not. A [unique key](NewJob::unique) makes
//!   it safe to enqueue again.
//!
//! Behind a proxy that pools transactions, such as PgBouncer, switch off the statement cache, if the proxy cannot keep
//! prepared statements: `set_prepared_statement_cache_size(CacheSize::Disabled)` in the pool's `custom_setup`.

#[cfg(doc)]
use crate::Perform;
use crate::new_job::NewRow;
use crate::verbs::asynchronous::{change, enqueue, look, usable};
use crate::{Counts, EnqueueError, Failure, IntoNewJob, Job, JobError, JobFilter, NewJob};

pub use crate::backend::asynchronous::{AsyncJobBackend, AsyncJobConnection};

impl NewJob {
    /// Enqueues the job on the caller's connection, in its transaction if one is open: [`NewJob::enqueue`] for
    /// [diesel_async](crate::asynchronous).
    ///
    /// # Errors
    /// See [`EnqueueError`].
    pub fn enqueue_async<C: AsyncJobConnection>(
        self,
        conn: &mut C,
    ) -> impl Future<Output = Result<Job, EnqueueError>> + Send {
        let row = self.check::<C::Db>();
        async move {
            usable(conn)?;
            enqueue::one(conn, row?).await
        }
    }
}

impl Job {
    /// Enqueues all, or none where there is an error: [`Job::enqueue_all`] for [diesel_async](crate::asynchronous).
    ///
    /// # Errors
    /// See [`EnqueueError`].
    pub fn enqueue_all_async<C, I, Way>(
        conn: &mut C,
        jobs: I,
    ) -> impl Future<Output = Result<Vec<i64>, EnqueueError>> + Send + use<'_, C, I, Way>
    where
        C: AsyncJobConnection,
        I: IntoIterator,
        I::Item: IntoNewJob<Way>,
    {
        let rows = NewRow::check_all::<C::Db, _, _>(jobs);
        async move {
            usable(conn)?;
            enqueue::all(conn, &rows?).await
        }
    }

    /// Finds a job by its id: [`Job::find`] for [diesel_async](crate::asynchronous).
    ///
    /// # Errors
    /// [`JobError::NotFound`], or an error of the database.
    pub fn find_async<C: AsyncJobConnection>(
        conn: &mut C,
        id: i64,
    ) -> impl Future<Output = Result<Job, JobError>> + Send {
        async move {
            usable(conn)?;
            look::find(conn, id).await
        }
    }

    /// Counts all jobs by status: [`Job::counts`] for [diesel_async](crate::asynchronous).
    ///
    /// # Errors
    /// What the database says.
    pub fn counts_async<C: AsyncJobConnection>(
        conn: &mut C,
    ) -> impl Future<Output = Result<Counts, JobError>> + Send {
        async move {
            usable(conn)?;
            look::counts(conn).await
        }
    }

    /// Counts the jobs of one queue by status: [`Job::counts_in`] for [diesel_async](crate::asynchronous).
    ///
    /// # Errors
    /// What the database says.
    pub fn counts_in_async<C: AsyncJobConnection>(
        conn: &mut C,
        queue: &str,
    ) -> impl Future<Output = Result<Counts, JobError>> + Send {
        async move {
            usable(conn)?;
            look::counts_in(conn, queue).await
        }
    }

    /// The job's failed attempts, the first one first: [`Job::failures`] for [diesel_async](crate::asynchronous).
    ///
    /// # Errors
    /// What the database says.
    pub fn failures_async<C: AsyncJobConnection>(
        &self,
        conn: &mut C,
    ) -> impl Future<Output = Result<Vec<Failure>, JobError>> + Send {
        async move {
            usable(conn)?;
            look::failures(conn, self.id).await
        }
    }

    /// Ends a job that has not ended, as cancelled: [`Job::cancel`] for [diesel_async](crate::asynchronous).
    ///
    /// # Errors
    /// [`JobError::WrongStatus`] where it has ended.
    pub fn cancel_async<C: AsyncJobConnection>(
        conn: &mut C,
        id: i64,
        reason: &str,
    ) -> impl Future<Output = Result<(), JobError>> + Send {
        async move {
            usable(conn)?;
            change::cancel(conn, id, reason).await
        }
    }

    /// Removes a job and everything about it: [`Job::discard`] for [diesel_async](crate::asynchronous).
    ///
    /// # Errors
    /// [`JobError::WrongStatus`] where it is being performed.
    pub fn discard_async<C: AsyncJobConnection>(
        conn: &mut C,
        id: i64,
    ) -> impl Future<Output = Result<(), JobError>> + Send {
        async move {
            usable(conn)?;
            change::discard(conn, id).await
        }
    }

    /// Puts a job that has ended back to be performed again: [`Job::retry`] for [diesel_async](crate::asynchronous).
    ///
    /// # Errors
    /// [`JobError::WrongStatus`] where it has not ended, [`JobError::KeyTaken`] where its unique key is held by another
    /// job; it stays as it is then.
    pub fn retry_async<C: AsyncJobConnection>(
        conn: &mut C,
        id: i64,
    ) -> impl Future<Output = Result<(), JobError>> + Send {
        async move {
            usable(conn)?;
            change::retry(conn, id).await
        }
    }
}

impl JobFilter {
    /// Reads the page: [`JobFilter::load`] for [diesel_async](crate::asynchronous).
    ///
    /// # Errors
    /// What the database says.
    pub fn load_async<C: AsyncJobConnection>(
        &self,
        conn: &mut C,
    ) -> impl Future<Output = Result<Vec<Job>, JobError>> + Send {
        async move {
            usable(conn)?;
            look::list(conn, self).await
        }
    }
}
