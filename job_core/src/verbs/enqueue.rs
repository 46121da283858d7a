//! From a checked job to its rows, on the caller's connection and in its transaction.

use super::look::latest;
use super::transaction::{Work, is_broken, savepoint, transaction_depth, write_transaction};
use super::{JobBackend, JobConnection};
use crate::again::Tries;
use crate::new_job::NewRow;
use crate::{EnqueueError, Job};
use diesel::result::{DatabaseErrorKind, Error};
use job_db::{Database, Fault};

/// How often the holder of a unique key may vanish between our insert and our look before we give up.
const KEY_TRIES: u32 = 16;

verb! {
    /// Enqueues one job.
    pub(crate) fn one<C: JobConnection>(conn: &mut C, row: NewRow) -> Result<Job, EnqueueError> {
        if row.unique_key.is_none() && row.when.is_none() {
            return wait!(plain(conn, &row));
        }
        let keyed = row.unique_key.is_some();
        let rows = [row];
        for _ in 0..KEY_TRIES {
            // Together: once committed, a job may be performed and gone before it is looked at.
            if let Some(job) = wait!(together(conn, keyed, &InsertAndLook(&rows)))? {
                return Ok(job);
            }
            // The job that held the key has ended and is gone, so the key is free again.
        }
        Err(EnqueueError::KeyUnsettled)
    }
}

verb! {
    /// Enqueues a job without key and time.
    fn plain<C: JobConnection>(conn: &mut C, row: &NewRow) -> Result<Job, EnqueueError> {
        let mut tries = Tries::default();
        loop {
            let enqueued = wait!(C::Db::enqueue_plain(conn, row)).map_err(EnqueueError::from);
            if !tries.again::<C::Db, _, _>(transaction_depth(conn), &enqueued) {
                return enqueued.map_err(|error| name(conn, error, false));
            }
        }
    }
}

verb! {
    /// Enqueues all, or none where there is an error, and gives their ids in the order of the input.
    pub(crate) fn all<C: JobConnection>(conn: &mut C, rows: &[NewRow]) -> Result<Vec<i64>, EnqueueError> {
        let keyed = rows.iter().any(|row| row.unique_key.is_some());
        // PostgreSQL does it in one statement, which needs no transaction around it; but a serialization failure on a
        // unique key would end the caller's transaction.
        if !C::Db::ENQUEUES_IN_ONE_STATEMENT || keyed || chunks::<C::Db>(rows).count() > 1 {
            return wait!(together(conn, keyed, &Insert(rows)));
        }
        let mut tries = Tries::default();
        loop {
            let ids = wait!(insert(conn, rows));
            if !tries.again::<C::Db, _, _>(transaction_depth(conn), &ids) {
                return ids;
            }
        }
    }
}

verb! {
    /// Does the work as a whole: in a savepoint of the caller's transaction, or in a transaction of ours.
    fn together<C: JobConnection, W: Work<C, Error = EnqueueError>>(
        conn: &mut C,
        keyed: bool,
        work: &W,
    ) -> Result<W::Done, EnqueueError> {
        let done = if transaction_depth(conn) > 0 {
            wait!(savepoint(conn, work))
        } else {
            wait!(write_transaction(conn, work))
        };
        done.map_err(|error| name(conn, error, keyed))
    }
}

/// Gives the ids.
struct Insert<'a>(&'a [NewRow]);

impl<C: JobConnection> Work<C> for Insert<'_> {
    type Done = Vec<i64>;
    type Error = EnqueueError;

    verb! {
        fn carry_out(&self, conn: &mut C) -> Result<Vec<i64>, EnqueueError> {
            wait!(insert(conn, self.0))
        }
    }
}

/// Gives the first job, or `None` where it held the key and is gone.
struct InsertAndLook<'a>(&'a [NewRow]);

impl<C: JobConnection> Work<C> for InsertAndLook<'_> {
    type Done = Option<Job>;
    type Error = EnqueueError;

    verb! {
        fn carry_out(&self, conn: &mut C) -> Result<Option<Job>, EnqueueError> {
            let id = wait!(insert(conn, self.0))?[0];
            Ok(wait!(latest(conn, id)).map_err(Error::from)?)
        }
    }
}

verb! {
    fn insert<C: JobConnection>(conn: &mut C, rows: &[NewRow]) -> Result<Vec<i64>, EnqueueError> {
        let mut ids = Vec::with_capacity(rows.len());
        for chunk in chunks::<C::Db>(rows) {
            ids.extend(wait!(insert_chunk(conn, chunk))?);
        }
        Ok(ids)
    }
}

verb! {
    /// Inserts what has no key or whose key is free; for the others it finds the job that holds the key.
    fn insert_chunk<C: JobConnection>(conn: &mut C, rows: &[NewRow]) -> Result<Vec<i64>, EnqueueError> {
        let mut ids: Vec<Option<i64>> = vec![None; rows.len()];
        for _ in 0..KEY_TRIES {
            let open: Vec<usize> = (0..rows.len()).filter(|&at| ids[at].is_none()).collect();
            if open.is_empty() {
                break;
            }
            let batch: Vec<&NewRow> = open.iter().map(|&at| &rows[at]).collect();
            for (position, id) in wait!(C::Db::enqueue_many(conn, &batch))? {
                ids[open[position]] = Some(id);
            }
            for at in open {
                if let (None, Some(key)) = (ids[at], &rows[at].unique_key) {
                    ids[at] = wait!(C::Db::key_holder(conn, key))?;
                }
            }
        }
        ids.into_iter()
            .collect::<Option<Vec<i64>>>()
            .ok_or(EnqueueError::KeyUnsettled)
    }
}

/// Names the error after which the caller's whole transaction must be run again.
fn name<C: JobConnection>(conn: &mut C, error: EnqueueError, keyed: bool) -> EnqueueError {
    let EnqueueError::Database(cause) = &error else {
        return error;
    };
    let hidden = keyed
        && C::Db::ABORTS_TRANSACTION_ON_ERROR
        && matches!(
            cause,
            Error::DatabaseError(DatabaseErrorKind::SerializationFailure, _)
        );
    if hidden || (C::Db::fault(cause) == Fault::Contended && is_broken(conn)) {
        return EnqueueError::Serialization;
    }
    error
}

/// Cuts the rows so that no statement is too large for the database.
fn chunks<DB: JobBackend>(rows: &[NewRow]) -> impl Iterator<Item = &[NewRow]> {
    let mut rest = rows;
    std::iter::from_fn(move || {
        if rest.is_empty() {
            return None;
        }
        let mut bytes = 0;
        let fitting = rest
            .iter()
            .take(DB::MAX_ROWS_PER_STATEMENT)
            .take_while(|row| {
                bytes += row.args.0.len() + row.queue.len() + 200;
                bytes <= DB::MAX_BYTES_PER_STATEMENT
            })
            .count();
        let (chunk, others) = rest.split_at(fitting.max(1));
        rest = others;
        Some(chunk)
    })
}
