use diesel::connection::{Connection, TransactionManager};

/// How many transactions are open on a connection: 0 for none, 1 for a transaction, more for savepoints in it.
/// A connection in an unknown state counts as being in a transaction.
pub fn transaction_depth<C: Connection>(conn: &mut C) -> u32 {
    C::TransactionManager::transaction_manager_status_mut(conn)
        .transaction_depth()
        .map_or(1, |depth| depth.map_or(0, std::num::NonZeroU32::get))
}

/// Rolls back until no more than `depth` transactions are open. For use after a panic, since
/// `Connection::transaction` leaves its transaction open then.
pub fn roll_back_to<C: Connection>(conn: &mut C, depth: u32) {
    while transaction_depth(conn) > depth {
        let before = transaction_depth(conn);
        // A savepoint that is gone is an error, and Diesel counts it as rolled back; the transaction around it is still to do.
        if C::TransactionManager::rollback_transaction(conn).is_err() && transaction_depth(conn) >= before {
            break;
        }
    }
}
