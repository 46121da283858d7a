use crate::alone::in_transaction;
use crate::backend::LockBackend;
use crate::backend::slot::{SlotBackend, SlotKey};
use crate::mark::{commit_marked, mark};
use crate::{LockConnection, LockError};
use job_db::roll_back_to;
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
            mark(conn)?;
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
            commit_marked(conn, namespace)?;
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
