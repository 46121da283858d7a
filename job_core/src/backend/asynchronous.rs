//! The database seam for connections of diesel_async: what the verbs that users call need.

use super::Ending;
#[cfg(doc)]
use super::JobBackend;
use crate::job::JobFilter;
use crate::new_job::NewRow;
use crate::{Failure, Job, JobError};
use diesel::QueryResult;
use diesel_async::AsyncConnection;
use job_db::Database;

/// Any connection of diesel_async to PostgreSQL: an `AsyncPgConnection`, or what a pool of `deadpool` or `bb8` gives.
/// Implemented for every such connection; there is nothing to implement.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a connection of diesel_async that the job queue can use",
    label = "pass a `&mut` AsyncPgConnection or what a deadpool or bb8 pool gives",
    note = "with a pool call `pool.get().await?` first; the other verbs, without `_async`, take Diesel's own connections"
)]
pub trait AsyncJobConnection: AsyncConnection<Backend = Self::Db> {
    /// The database behind this connection.
    type Db: AsyncJobBackend;
}

impl<C> AsyncJobConnection for C
where
    C: AsyncConnection<Backend: AsyncJobBackend>,
{
    type Db = C::Backend;
}

/// What [`JobBackend`] has, for connections of diesel_async. Its methods are for this crate.
#[doc(hidden)]
pub trait AsyncJobBackend: Database {
    const ENQUEUES_IN_ONE_STATEMENT: bool;
    const MAX_ROWS_PER_STATEMENT: usize;
    const MAX_BYTES_PER_STATEMENT: usize;
    const CAN_NOTIFY: bool;

    /// The first statement of a transaction of ours.
    fn begin_at_read_committed<C: Conn<Self>>(conn: &mut C) -> impl Answer<QueryResult<()>>;
    fn enqueue_plain<C: Conn<Self>>(conn: &mut C, row: &NewRow) -> impl Answer<QueryResult<Job>>;
    fn enqueue_many<C: Conn<Self>>(
        conn: &mut C,
        rows: &[&NewRow],
    ) -> impl Answer<QueryResult<Vec<(usize, i64)>>>;
    fn key_holder<C: Conn<Self>>(conn: &mut C, key: &str) -> impl Answer<QueryResult<Option<i64>>>;
    fn take_key<C: Conn<Self>>(conn: &mut C, key: &str, job_id: i64) -> impl Answer<QueryResult<bool>>;
    fn free_key<C: Conn<Self>>(conn: &mut C, job_id: i64) -> impl Answer<QueryResult<()>>;
    fn find<C: Conn<Self>>(conn: &mut C, id: i64) -> impl Answer<Result<Option<Job>, JobError>>;
    fn find_latest<C: Conn<Self>>(conn: &mut C, id: i64) -> impl Answer<Result<Option<Job>, JobError>> {
        Self::find(conn, id)
    }
    fn list<C: Conn<Self>>(conn: &mut C, filter: &JobFilter) -> impl Answer<Result<Vec<Job>, JobError>>;
    fn failures<C: Conn<Self>>(conn: &mut C, id: i64) -> impl Answer<QueryResult<Vec<Failure>>>;
    fn count<C: Conn<Self>>(conn: &mut C) -> impl Answer<QueryResult<Vec<(i32, i64)>>>;
    fn count_in<C: Conn<Self>>(conn: &mut C, queue: &str) -> impl Answer<QueryResult<Vec<(i32, i64)>>>;
    fn insert_finished<C: Conn<Self>>(conn: &mut C, end: &Ending<'_>) -> impl Answer<QueryResult<()>>;
    fn insert_new<C: Conn<Self>>(
        conn: &mut C,
        job_id: i64,
        attempts: i32,
        uncharged: i32,
    ) -> impl Answer<QueryResult<()>>;
    fn delete_state<C: Conn<Self>>(conn: &mut C, job: &Job) -> impl Answer<QueryResult<usize>>;
    fn delete_facts<C: Conn<Self>>(conn: &mut C, ids: &[i64]) -> impl Answer<QueryResult<()>>;
    fn notify<C: Conn<Self>>(conn: &mut C) -> impl Answer<QueryResult<()>>;
}

/// A connection to one database.
#[doc(hidden)]
pub trait Conn<DB>: AsyncConnection<Backend = DB> {}

impl<DB, C: AsyncConnection<Backend = DB>> Conn<DB> for C {}

/// A future that any thread may go on with.
#[doc(hidden)]
pub trait Answer<T>: Future<Output = T> + Send {}

impl<T, F: Future<Output = T> + Send> Answer<T> for F {}
