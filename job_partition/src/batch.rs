//! One batch, in one transaction: lock, read, work, check, commit.

use crate::backend::{Lock, SET, Take};
use crate::run::{Conn, Db, Shared};
use crate::table::Span;
use crate::work::{OVER, fault_of_work, perform};
use crate::{KeyValue, PartitionBackend, PartitionConnection, PartitionError};
use anyhow::anyhow;
use diesel::Connection;
use diesel::connection::{SimpleConnection, TransactionManager};
use diesel::deserialize::QueryableByName;
use diesel::r2d2::ManageConnection;
use diesel::result::Error;
use job_db::{Database, Fault, roll_back_to};
use std::collections::HashSet;

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

/// What a batch that failed has left behind.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Left {
    /// Nothing: it is rolled back.
    Nothing,
    /// Nothing, if its session is discarded: the connection is in an unknown state.
    Unknown,
    /// The closure's transaction was over before its end: some of what it wrote may be committed.
    Writes,
}

/// Why a batch came to nothing.
#[derive(Debug)]
pub(crate) enum Trouble {
    /// A statement before the closure failed.
    Statement(Error),
    /// The closure failed on these rows, or what it did could not be committed.
    Work {
        keys: Vec<KeyValue>,
        error: anyhow::Error,
        left: Left,
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
            // What is committed in part is not to be tried again as if it were not.
            Trouble::Work {
                left: Left::Writes, ..
            } => Fault::Other,
            Trouble::Work { error, .. } => fault_of_work::<DB>(error),
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
    conn.batch_execute(SET)?;
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
        perform::<Db<M>, _, _>(work, &rows, &keys, conn)?;
        all_marked(shared, conn, &keys, span)?;
    }
    C::<M>::commit_transaction(conn).map_err(|error| of_work(&keys, error))?;
    Ok(Batch::Done {
        done: keys.len(),
        found: count,
        last,
        failed,
    })
}

type C<M> = <Conn<M> as Connection>::TransactionManager;

/// How many rows of a batch are looked for, to know whether the closure leaves them where they are.
const SOME: usize = 100;

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
    let mut sql = plan.still_pending(keys);
    sql.text(Db::<M>::TELLS_OF_END);
    let found = Db::<M>::numbered(conn, sql).map_err(|error| of_work(keys, error))?;
    if found.iter().any(|row| row.number == 1) {
        return Err(Trouble::Work {
            keys: keys.to_vec(),
            error: anyhow!(OVER),
            left: Left::Writes,
        });
    }
    let mut left = Vec::new();
    if !found.is_empty() {
        let ours: HashSet<&KeyValue> = keys.iter().collect();
        for row in found {
            let key = plan.table.parse(&row.key)?;
            if ours.contains(&key) {
                left.push(key);
            }
        }
    }
    if left.is_empty() {
        if shared.ebb.wants_look(shared.tally.rows()) {
            let some = &keys[..keys.len().min(SOME)];
            let there = Db::<M>::numbered(conn, plan.there(some)).map_err(|error| of_work(keys, error))?;
            if there.len() < some.len() {
                shared.ebb.watch();
            }
        }
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
        left: Left::Nothing,
    })
}

/// An error that what the closure did may have brought about, such as of a constraint that is checked at COMMIT. Also one that
/// may go away by another try may be that of one row, such as one that the session does not live through.
fn of_work(keys: &[KeyValue], error: Error) -> Trouble {
    Trouble::Work {
        keys: keys.to_vec(),
        error: error.into(),
        left: Left::Nothing,
    }
}
