use diesel::connection::{Connection, TransactionManager};
use diesel::result::Error;

/// How many transactions are open on a connection: 0 for none, 1 for a transaction, more for savepoints in it.
/// A connection in an unknown state counts as being in a transaction.
pub fn transaction_depth<C: Connection>(conn: &mut C) -> u32 {
    C::TransactionManager::transaction_manager_status_mut(conn)
        .transaction_depth()
        .map_or(1, |depth| depth.map_or(0, std::num::NonZeroU32::get))
}

/// Rolls back until no more than `depth` transactions are open. For use after a panic, since
/// `Connection::transaction` leaves its transaction open then. Where the caller's transaction turns out to be over, it is
/// marked as broken: see [`savepoint`].
pub fn roll_back_to<C: Connection>(conn: &mut C, depth: u32) {
    let rolls_back = transaction_depth(conn) > depth;
    while transaction_depth(conn) > depth {
        let before = transaction_depth(conn);
        // A savepoint that is gone is an error, and Diesel counts it as rolled back; the transaction around it is still to do.
        if C::TransactionManager::rollback_transaction(conn).is_err() && transaction_depth(conn) >= before {
            break;
        }
    }
    if rolls_back {
        mark_if_over(conn, depth);
    }
}

/// After a rollback to the savepoint at `depth`: where it is gone, the transaction around it is over, and Diesel must not
/// commit what follows.
pub fn mark_if_over<C: Connection>(conn: &mut C, depth: u32) {
    // A rollback to a savepoint keeps it; and Diesel says nothing of a rollback that failed after a deadlock.
    if depth > 0
        && !is_broken(conn)
        && conn
            .batch_execute(&format!("ROLLBACK TO SAVEPOINT diesel_savepoint_{depth}"))
            .is_err()
    {
        C::TransactionManager::transaction_manager_status_mut(conn).set_in_error();
    }
}

/// Runs `work` in a savepoint of the caller's open transaction. Some errors (MySQL's and MariaDB's deadlocks, MariaDB's
/// "Record has changed since last read") end the whole transaction and its savepoints, of which Diesel knows nothing: it
/// would commit what follows, piece by piece. Then the connection's transaction is marked as broken, so that it cannot be
/// committed. The error is always that of `work`, never that of the rollback.
///
/// # Errors
/// That of `work`, or of the savepoint itself.
pub fn savepoint<C, T, E>(conn: &mut C, work: impl FnOnce(&mut C) -> Result<T, E>) -> Result<T, E>
where
    C: Connection,
    E: From<Error>,
{
    let depth = transaction_depth(conn);
    let mut failed = None;
    let done = conn.transaction(|conn| {
        work(conn).map_err(|error| {
            failed = Some(error);
            E::from(Error::RollbackTransaction)
        })
    });
    let Some(error) = failed else {
        return done;
    };
    mark_if_over(conn, depth);
    Err(error)
}

/// Whether the connection's transaction is known to be over or in an unknown state: it can neither go on nor be committed.
pub fn is_broken<C: Connection>(conn: &mut C) -> bool {
    C::TransactionManager::transaction_manager_status_mut(conn)
        .transaction_depth()
        .is_err()
}
