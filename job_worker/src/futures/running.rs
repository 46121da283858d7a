use job_core::{RunAsync, Ticket};
use std::collections::{HashMap, HashSet};
use std::sync::{Mutex, MutexGuard, PoisonError};
use tokio::task::AbortHandle;

/// An attempt: the job, and the number of its claim.
pub(super) type Attempt = (i64, i32);

pub(super) fn attempt(ticket: &Ticket) -> Attempt {
    (ticket.job_id, ticket.attempts)
}

/// The attempts that are being performed as futures.
pub(super) struct Running<X>(Mutex<HashMap<Attempt, Entry<X>>>);

struct Entry<X> {
    run: RunAsync<X>,
    /// What drops the future; `None` until its task was started.
    task: Option<AbortHandle>,
}

impl<X> Running<X> {
    pub(super) fn new() -> Self {
        Running(Mutex::new(HashMap::new()))
    }

    pub(super) fn enter(&self, attempt: Attempt, run: RunAsync<X>) {
        self.entries().insert(attempt, Entry { run, task: None });
    }

    /// Its task was started, and may have ended since.
    pub(super) fn started(&self, attempt: Attempt, task: AbortHandle) {
        if let Some(entry) = self.entries().get_mut(&attempt) {
            entry.task = Some(task);
        }
    }

    pub(super) fn leave(&self, attempt: Attempt) {
        // What it holds is dropped when others may have the lock again.
        let entry = self.entries().remove(&attempt);
        drop(entry);
    }

    pub(super) fn all(&self) -> Vec<Attempt> {
        self.entries().keys().copied().collect()
    }

    pub(super) fn are_none(&self) -> bool {
        self.entries().is_empty()
    }

    /// Drops those that were running before the database was asked what the worker holds, and are not among it. One that
    /// records its completion itself is left alone: it does not hold its job any more either.
    pub(super) fn drop_lost(&self, running: Vec<Attempt>, held: &[Ticket]) -> usize {
        let held: HashSet<Attempt> = held.iter().map(attempt).collect();
        let entries = self.entries();
        let lost = running
            .into_iter()
            .filter(|attempt| !held.contains(attempt))
            .filter_map(|attempt| entries.get(&attempt))
            .filter(|entry| !entry.run.may_be_recorded());
        let tasks: Vec<AbortHandle> = lost.filter_map(|entry| entry.task.clone()).collect();
        drop(entries);
        tasks.iter().for_each(AbortHandle::abort);
        tasks.len()
    }

    pub(super) fn drop_all(&self) {
        let tasks: Vec<AbortHandle> = self
            .entries()
            .values()
            .filter_map(|entry| entry.task.clone())
            .collect();
        tasks.iter().for_each(AbortHandle::abort);
    }

    fn entries(&self) -> MutexGuard<'_, HashMap<Attempt, Entry<X>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
