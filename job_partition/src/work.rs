//! The closure, and what it leaves of its transaction.

use crate::backend::ROLL_BACK;
use crate::batch::{Left, Trouble};
use crate::{KeyValue, PartitionBackend};
use anyhow::anyhow;
use diesel::connection::LoadConnection;
use diesel::result::Error;
use job_db::{Database, Fault, is_broken, transaction_depth};
use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};

/// What is said of a transaction that was over too soon.
pub(crate) const OVER: &str = "the batch's transaction was not as the closure found it, and some of what the closure wrote may be committed \
     already: leave COMMIT and ROLLBACK to the run, do no DDL on MySQL and MariaDB, and hand on the errors of your statements";

/// Calls the closure. After a panic nobody knows what state the connection is in.
pub(crate) fn perform<DB, T, Conn>(
    work: impl Fn(&[T], &mut Conn) -> anyhow::Result<()>,
    rows: &[T],
    keys: &[KeyValue],
    conn: &mut Conn,
) -> Result<(), Trouble>
where
    DB: PartitionBackend,
    Conn: LoadConnection<Backend = DB>,
{
    let (error, left) = match catch_unwind(AssertUnwindSafe(|| work(rows, conn))) {
        Ok(Ok(())) if !is_broken(conn) && transaction_depth(conn) == 1 => match DB::check_open(conn) {
            Ok(()) => return Ok(()),
            Err(error) => of_open(DB::fault(&error), error),
        },
        // The closure may have swallowed that its session was gone.
        Ok(Ok(())) => match conn.batch_execute("SELECT 1") {
            Ok(()) => (anyhow!(OVER), Left::Writes),
            Err(error) => of_open(DB::fault(&error), error),
        },
        Ok(Err(error)) => (error, Left::Nothing),
        Err(panic) => (
            anyhow!("the closure panicked: {}", message(panic.as_ref())),
            Left::Unknown,
        ),
    };
    let is_over = left != Left::Writes && fault_of_work::<DB>(&error) == Fault::Other && is_over(conn);
    let (error, left) = if is_over {
        (error.context(OVER), Left::Writes)
    } else {
        (error, left)
    };
    Err(Trouble::Work {
        keys: keys.to_vec(),
        error,
        left,
    })
}

/// What it means that the transaction does not answer: it went with its session, or it is over.
fn of_open(fault: Fault, error: Error) -> (anyhow::Error, Left) {
    match fault {
        Fault::Disconnected => (error.into(), Left::Unknown),
        _ => (anyhow!(OVER), Left::Writes),
    }
}

/// Rolls back what the closure did, or finds that its transaction is over.
fn is_over<DB: Database, Conn: LoadConnection<Backend = DB>>(conn: &mut Conn) -> bool {
    match conn.batch_execute(ROLL_BACK) {
        Ok(()) => false,
        Err(error) => DB::fault(&error) != Fault::Disconnected,
    }
}

pub(crate) fn message(panic: &(dyn Any + Send)) -> &str {
    panic
        .downcast_ref::<&str>()
        .copied()
        .or_else(|| panic.downcast_ref::<String>().map(String::as_str))
        .unwrap_or("with something that is no text")
}

/// Whether the same batch may succeed when it is tried again, by the error of the closure.
pub(crate) fn fault_of_work<DB: Database>(error: &anyhow::Error) -> Fault {
    error
        .chain()
        .find_map(|cause| cause.downcast_ref::<Error>())
        .map_or(Fault::Other, DB::fault)
}
