//! One batch, in one transaction: lock, read, work, check, commit.

use crate::backend::{Lock, Take};
use crate::plan::Span;
use crate::run::{Conn, Db, Shared};
use crate::{KeyValue, PartitionBackend, PartitionConnection, PartitionError};
use anyhow::anyhow;
use diesel::Connection;
use diesel::connection::TransactionManager;
use diesel::deserialize::QueryableByName;
use diesel::r2d2::ManageConnection;
use diesel::result::Error;
use job_db::{Database, Fault, roll_back_to, transaction_depth};
use std::any::Any;
use std::collections::HashSet;
use std::panic::{AssertUnwindSafe, catch_unwind};

/// What came of a batch.
#[derive(Debug)]
pub(crate) enum Batch {
    /// It is committed.
    Done {
        /// How many rows the closure got and marked.
        done: usize,
        /// How many rows were found, those that are known to fail included.
        found: usize,
        /// The last of them.
        last: Option<KeyValue>,
        /// The rows that failed by themselves: they could not be read, or were left pending.
        failed: Vec<(KeyValue, String)>,
    },
    /// Somebody else has the partition's lock.
    Busy,
}

/// Why a batch came to nothing. It is rolled back.
#[derive(Debug)]
pub(crate) enum Trouble {
    /// A statement around the closure failed.
    Statement(Error),
    /// The closure failed on these rows, or what it did could not be committed.
    Work {
        keys: Vec<KeyValue>,
        error: anyhow::Error,
        /// Whether the connection is in an unknown state.
        broken: bool,
    },
    /// There is no use in going on.
    Fatal(PartitionError),
}

impl From<Error> for Trouble {
    fn from(error: Error) -> Self {
        Trouble::Statement(error)
    }
}

impl From<PartitionError> for Trouble {
    fn from(error: PartitionError) -> Self {
        Trouble::Fatal(error)
    }
}

impl Trouble {
    /// Whether the same batch may succeed when it is tried again.
    pub(crate) fn fault<DB: Database>(&self) -> Fault {
        match self {
            Trouble::Statement(error) => DB::fault(error),
            Trouble::Work { error, .. } => error
                .chain()
                .find_map(|cause| cause.downcast_ref::<Error>())
                .map_or(Fault::Other, DB::fault),
            Trouble::Fatal(_) => Fault::Other,
        }
    }
}

/// Tries the batch once. What the lock needs beyond the transaction's end is left to the caller.
pub(crate) fn attempt<M, T, F>(
    shared: &Shared<'_, M>,
    conn: &mut Conn<M>,
    work: &F,
    lock: &Lock,
    span: &Span,
    limit: usize,
) -> Result<Batch, Trouble>
where
    M: ManageConnection,
    M::Connection: PartitionConnection,
    T: QueryableByName<Db<M>> + 'static,
    F: Fn(&[T], &mut M::Connection) -> anyhow::Result<()>,
{
    match Db::<M>::begin(conn, lock) {
        Ok(Take::Taken) => {}
        Ok(Take::Busy) => return Ok(Batch::Busy),
        Err(error) => {
            roll_back_to(conn, 0);
            return Err(error.into());
        }
    }
    let result = in_transaction(shared, conn, work, lock.number.into(), span, limit);
    if result.is_err() {
        roll_back_to(conn, 0);
    }
    result
}

fn in_transaction<M, T, F>(
    shared: &Shared<'_, M>,
    conn: &mut Conn<M>,
    work: &F,
    part: usize,
    span: &Span,
    limit: usize,
) -> Result<Batch, Trouble>
where
    M: ManageConnection,
    M::Connection: PartitionConnection,
    T: QueryableByName<Db<M>> + 'static,
    F: Fn(&[T], &mut M::Connection) -> anyhow::Result<()>,
{
    let plan = &shared.plan;
    let found = Db::<M>::rows::<_, T>(conn, plan.select(part, span, limit))?;
    let count = found.len();
    let (mut keys, mut rows, mut failed) = (Vec::with_capacity(count), Vec::with_capacity(count), Vec::new());
    let mut last = None;
    for found in found {
        let key = plan.table.parse(&found.key)?;
        last = Some(key.clone());
        if shared.tally.has_failed(&key) {
            continue;
        }
        match found.row {
            Ok(row) => {
                keys.push(key);
                rows.push(row);
            }
            Err(error) => failed.push((key, format!("the row cannot be read: {error}"))),
        }
    }
    if !rows.is_empty() {
        perform(work, &rows, &keys, conn)?;
        all_marked(shared, conn, &keys, span)?;
    }
    C::<M>::commit_transaction(conn).map_err(|error| of_work::<M>(&keys, error))?;
    Ok(Batch::Done {
        done: keys.len(),
        found: count,
        last,
        failed,
    })
}

type C<M> = <Conn<M> as Connection>::TransactionManager;

/// Calls the closure. After a panic nobody knows what state the connection is in.
fn perform<T, Conn: Connection>(
    work: impl Fn(&[T], &mut Conn) -> anyhow::Result<()>,
    rows: &[T],
    keys: &[KeyValue],
    conn: &mut Conn,
) -> Result<(), Trouble> {
    let (error, broken) = match catch_unwind(AssertUnwindSafe(|| work(rows, conn))) {
        Ok(Ok(())) if transaction_depth(conn) == 1 => return Ok(()),
        Ok(Ok(())) => (
            anyhow!(
                "the batch's transaction was not as the closure found it: leave COMMIT and ROLLBACK to the run"
            ),
            true,
        ),
        Ok(Err(error)) => (error, false),
        Err(panic) => (anyhow!("the closure panicked: {}", message(panic.as_ref())), true),
    };
    Err(Trouble::Work {
        keys: keys.to_vec(),
        error,
        broken,
    })
}

fn message(panic: &(dyn Any + Send)) -> &str {
    panic
        .downcast_ref::<&str>()
        .copied()
        .or_else(|| panic.downcast_ref::<String>().map(String::as_str))
        .unwrap_or("with something that is no text")
}

/// Rows that the closure has left pending, against its word, would come again for ever. They are failures, which the batch is
/// halved for; if it is all rows of the first batch, the closure marks nothing at all.
fn all_marked<M>(
    shared: &Shared<'_, M>,
    conn: &mut Conn<M>,
    keys: &[KeyValue],
    span: &Span,
) -> Result<(), Trouble>
where
    M: ManageConnection,
    M::Connection: PartitionConnection,
{
    let plan = &shared.plan;
    // Where the closure has swallowed an error that ended the transaction, this is what fails.
    let found =
        Db::<M>::numbered(conn, plan.still_pending(keys)).map_err(|error| of_work::<M>(keys, error))?;
    let ours: HashSet<&KeyValue> = keys.iter().collect();
    let mut left = Vec::new();
    for row in found {
        let key = plan.table.parse(&row.key)?;
        if ours.contains(&key) {
            left.push(key);
        }
    }
    if left.is_empty() {
        return Ok(());
    }
    if left.len() == keys.len() && shared.tally.rows() == 0 && matches!(span, Span::After(_)) {
        return Err(Trouble::Fatal(PartitionError::NotMarked {
            key: left.swap_remove(0),
            pending: plan.table.pending.clone(),
        }));
    }
    Err(Trouble::Work {
        keys: keys.to_vec(),
        error: anyhow!("the closure succeeded, but the row is still pending"),
        broken: false,
    })
}

/// An error that what the closure did may have brought about, such as of a constraint that is checked at COMMIT.
fn of_work<M>(keys: &[KeyValue], error: Error) -> Trouble
where
    M: ManageConnection,
    M::Connection: PartitionConnection,
{
    match Db::<M>::fault(&error) {
        Fault::Other => Trouble::Work {
            keys: keys.to_vec(),
            error: error.into(),
            broken: false,
        },
        _ => Trouble::Statement(error),
    }
}
