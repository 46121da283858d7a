//! Transactions on diesel_async's connections. Whoever drops a future in the middle of one leaves it open on the server;
//! so it is marked as broken then, and can neither go on nor be committed, and a pool drops the connection.

use super::{JobBackend as _, JobConnection};
use crate::again::{MayBeContended, Tries};
use diesel::QueryResult;
use diesel::result::Error;
use diesel_async::{AsyncConnection, TransactionManager};
use std::num::NonZeroU32;

/// What is done as a whole, in one transaction.
pub(super) trait Work<C>: Sync {
    type Done: Send;
    type Error: From<Error> + MayBeContended + Send;

    fn carry_out(&self, conn: &mut C) -> impl Future<Output = Result<Self::Done, Self::Error>> + Send;
}

/// As that of `job_db`.
pub(super) fn transaction_depth<C: AsyncConnection>(conn: &mut C) -> u32 {
    C::TransactionManager::transaction_manager_status_mut(conn)
        .transaction_depth()
        .map_or(1, |depth| depth.map_or(0, NonZeroU32::get))
}

/// As that of `job_db`.
pub(super) fn is_broken<C: AsyncConnection>(conn: &mut C) -> bool {
    C::TransactionManager::transaction_manager_status_mut(conn)
        .transaction_depth()
        .is_err()
}

/// Refuses a connection on which a dropped future has left a transaction open, or may have: a single statement would
/// succeed in there, and be lost.
pub(crate) fn usable<C: AsyncConnection>(conn: &mut C) -> QueryResult<()> {
    // Between transactions, a manager that is broken was left in the middle of BEGIN.
    let alone = transaction_depth(conn) == 0;
    if is_broken(conn) || (alone && C::TransactionManager::is_broken_transaction_manager(conn)) {
        return Err(Error::BrokenTransactionManager);
    }
    Ok(())
}

/// In a savepoint of the caller's transaction.
pub(super) async fn savepoint<C: JobConnection, W: Work<C>>(
    conn: &mut C,
    work: &W,
) -> Result<W::Done, W::Error> {
    whole(conn, work).await
}

/// In a transaction, which is run again where another stood in its way; or in a savepoint of the caller's.
pub(super) async fn write_transaction<C: JobConnection, W: Work<C>>(
    conn: &mut C,
    work: &W,
) -> Result<W::Done, W::Error> {
    let mut tries = Tries::default();
    loop {
        let done = whole(conn, work).await;
        if !tries.again::<C::Db, _, _>(transaction_depth(conn), &done) {
            return done;
        }
    }
}

async fn whole<C: JobConnection, W: Work<C>>(conn: &mut C, work: &W) -> Result<W::Done, W::Error> {
    let outermost = transaction_depth(conn) == 0;
    let mut open = Open { conn, ended: false };
    if let Err(error) = C::TransactionManager::begin_transaction(open.conn).await {
        open.ended = true;
        return Err(error.into());
    }
    let done = carry_out(open.conn, work, outermost).await;
    if done.is_ok() {
        let committed = C::TransactionManager::commit_transaction(open.conn).await;
        open.ended = true;
        committed?;
    } else {
        // The error is always that of the work. A transaction that cannot be rolled back is broken.
        let rolled_back = C::TransactionManager::rollback_transaction(open.conn).await;
        open.ended = rolled_back.is_ok();
    }
    done
}

async fn carry_out<C: JobConnection, W: Work<C>>(
    conn: &mut C,
    work: &W,
    outermost: bool,
) -> Result<W::Done, W::Error> {
    if outermost {
        C::Db::begin_at_read_committed(conn).await?;
    }
    work.carry_out(conn).await
}

/// A transaction or a savepoint that is under way.
struct Open<'a, C: AsyncConnection> {
    conn: &'a mut C,
    ended: bool,
}

impl<C: AsyncConnection> Drop for Open<'_, C> {
    fn drop(&mut self) {
        if !self.ended {
            C::TransactionManager::transaction_manager_status_mut(self.conn).set_in_error();
        }
    }
}
