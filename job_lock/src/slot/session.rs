use crate::alone::in_transaction;
use crate::backend::LockBackend;
use crate::backend::slot::{SlotBackend, SlotKey};
use crate::mark::{mark, run_marked};
use crate::{LockConnection, LockError};
use diesel::result::QueryResult;
use job_db::roll_back_to;
use std::io;
use std::panic::resume_unwind;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// A session that has a slot's lock: what the slot and its heart share. One of them at a time uses the connection.
pub(crate) struct Session<C> {
    namespace: String,
    number: u32,
    /// How long the heart may wait for an answer before that counts as a loss.
    patience: Duration,
    state: Mutex<State<C>>,
    is_back: Condvar,
}

struct State<C> {
    /// `None` while it is in use.
    conn: Option<C>,
    /// Since when the heart, which has the connection then, waits for an answer.
    asked: Option<Instant>,
    is_lost: bool,
}

impl<C> State<C> {
    fn is_lost(&mut self, patience: Duration) -> bool {
        self.is_lost |= self.asked.is_some_and(|asked| asked.elapsed() >= patience);
        self.is_lost
    }
}

impl<C: LockConnection> Session<C> {
    pub(super) fn new(conn: C, key: SlotKey<'_>, patience: Duration) -> Self {
        Self {
            namespace: key.namespace.to_owned(),
            number: key.number,
            patience,
            state: Mutex::new(State {
                conn: Some(conn),
                asked: None,
                is_lost: false,
            }),
            is_back: Condvar::new(),
        }
    }

    /// It never changes back.
    pub(super) fn is_lost(&self) -> bool {
        self.lock().is_lost(self.patience)
    }

    /// Asks the database. Any error counts as a loss: there is no second session that could be asked.
    pub(super) fn check(&self) -> bool {
        let Some(mut conn) = self.take() else { return false };
        let is_ours = self.ask(&mut conn).unwrap_or(false);
        self.put_back(conn, is_ours);
        is_ours
    }

    /// Asks the database, unless the session is in use.
    pub(super) fn beat(&self) {
        let mut state = self.lock();
        let Some(mut conn) = state.conn.take() else { return };
        state.asked = Some(Instant::now());
        drop(state);
        let is_ours = self.ask(&mut conn).unwrap_or_else(|error| {
            self.warn(&format!("no answer about it: {error}"));
            false
        });
        self.put_back(conn, is_ours);
    }

    pub(super) fn transaction<T, E>(&self, work: impl FnOnce(&mut C) -> Result<T, E>) -> Result<T, E>
    where
        E: From<LockError>,
    {
        let Some(mut conn) = self.take() else {
            return Err(self.lost().into());
        };
        let is_ours = self.begin(&mut conn).unwrap_or(false);
        let result = if is_ours {
            Some(run_marked(&mut conn, &self.namespace, work))
        } else {
            roll_back_to(&mut conn, 0);
            None
        };
        self.put_back(conn, is_ours);
        match result {
            None => Err(self.lost().into()),
            Some(result) => result.unwrap_or_else(|panic| resume_unwind(panic)),
        }
    }

    /// Gives the lock back, and the connection. Nobody uses it any more.
    pub(super) fn free(&self) {
        let Some(mut conn) = self.lock().conn.take() else {
            return;
        };
        roll_back_to(&mut conn, 0);
        // An error means that the session is gone, and the lock with it.
        let _ = in_transaction(&mut conn, |conn| C::Db::free_slot(conn, self.key()));
    }

    fn ask(&self, conn: &mut C) -> QueryResult<bool> {
        in_transaction(conn, |conn| C::Db::has_slot(conn, self.key()))
    }

    /// `false`: the lock is not this session's.
    fn begin(&self, conn: &mut C) -> QueryResult<bool> {
        C::Db::begin(conn)?;
        let is_ours = C::Db::has_slot(conn, self.key())?;
        mark(conn)?;
        Ok(is_ours)
    }

    /// The connection, when the heart has its answer. `None`: the slot is lost.
    fn take(&self) -> Option<C> {
        let mut state = self.lock();
        while !state.is_lost(self.patience) {
            if let Some(conn) = state.conn.take() {
                return Some(conn);
            }
            let waited = state.asked?.elapsed();
            let (next, _) = self
                .is_back
                .wait_timeout(state, self.patience.saturating_sub(waited))
                .unwrap_or_else(PoisonError::into_inner);
            state = next;
        }
        None
    }

    fn put_back(&self, conn: C, is_ours: bool) {
        let mut state = self.lock();
        state.conn = Some(conn);
        state.asked = None;
        state.is_lost |= !is_ours;
        drop(state);
        self.is_back.notify_all();
    }

    fn key(&self) -> SlotKey<'_> {
        SlotKey {
            namespace: &self.namespace,
            number: self.number,
        }
    }

    fn lost(&self) -> LockError {
        LockError::SlotLost {
            namespace: self.namespace.clone(),
            number: self.number,
        }
    }

    pub(super) fn no_thread(&self, error: &io::Error) -> LockError {
        LockError::NoThread {
            name: self.namespace.clone(),
            reason: error.to_string(),
        }
    }

    pub(super) fn warn(&self, what: &str) {
        log::warn!("slot {} of {:?}: {what}", self.number, self.namespace);
    }

    fn lock(&self) -> MutexGuard<'_, State<C>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
