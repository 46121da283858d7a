use crate::alone::in_transaction;
use crate::backend::LockBackend;
use crate::backend::slot::{SlotBackend, SlotKey};
use crate::{LockConnection, LockError};
use diesel::connection::TransactionManager;
use job_db::{roll_back_to, transaction_depth};
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};

/// A session that has a slot's lock.
pub(crate) struct Session<C> {
    conn: C,
    is_lost: bool,
}

impl<C: LockConnection> Session<C> {
    pub(super) fn new(conn: C) -> Self {
        Self { conn, is_lost: false }
    }

    pub(super) fn is_lost(&self) -> bool {
        self.is_lost
    }

    /// Any error counts as a loss: there is no second session that could be asked.
    pub(super) fn check(&mut self, namespace: &str, number: u32) -> bool {
        let key = SlotKey { namespace, number };
        self.is_lost = self.is_lost
            || !in_transaction(&mut self.conn, |conn| C::Db::has_slot(conn, key)).unwrap_or(false);
        !self.is_lost
    }

    pub(super) fn transaction<T, E>(
        &mut self,
        namespace: &str,
        number: u32,
        work: impl FnOnce(&mut C) -> Result<T, E>,
    ) -> Result<T, E>
    where
        E: From<LockError>,
    {
        let key = SlotKey { namespace, number };
        let conn = &mut self.conn;
        let is_ours = C::Db::begin(conn).and_then(|()| {
            let is_ours = C::Db::has_slot(conn, key)?;
            // It goes with the transaction, whatever ends that, and then cannot be released.
            C::TransactionManager::begin_transaction(conn)?;
            Ok(is_ours)
        });
        if !is_ours.unwrap_or(false) {
            roll_back_to(conn, 0);
            self.is_lost = true;
            return Err(LockError::SlotLost {
                namespace: namespace.to_owned(),
                number,
            }
            .into());
        }
        let result = catch_unwind(AssertUnwindSafe(|| {
            let value = work(conn)?;
            commit(conn, key)?;
            Ok(value)
        }));
        roll_back_to(conn, 0);
        result.unwrap_or_else(|panic| resume_unwind(panic))
    }

    pub(super) fn free(&mut self, namespace: &str, number: u32) {
        let key = SlotKey { namespace, number };
        roll_back_to(&mut self.conn, 0);
        // An error means that the session is gone, and the lock with it.
        let _ = in_transaction(&mut self.conn, |conn| C::Db::free_slot(conn, key));
    }
}

/// Commits, if the transaction is still the one that was begun. A database may have rolled it back after an error that the
/// closure swallowed; COMMIT would say nothing then.
fn commit<C: LockConnection>(conn: &mut C, key: SlotKey<'_>) -> Result<(), LockError> {
    if transaction_depth(conn) != 2 || C::TransactionManager::commit_transaction(conn).is_err() {
        return Err(LockError::Lost(key.namespace.to_owned()));
    }
    C::TransactionManager::commit_transaction(conn)
        .map_err(|error| LockError::committing::<C::Db>(error, key.namespace))
}
