use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// The jobs that this worker has claimed and whose outcome it has not recorded, by id, with the number of the attempt.
/// The database may know of more: where the answer to a claim was lost, nobody here knows of the jobs, and the housekeeper
/// hands them back.
#[derive(Debug, Default)]
pub(crate) struct Hands {
    jobs: Mutex<HashMap<i64, i32>>,
    claiming: Mutex<()>,
}

impl Hands {
    /// Held from before a claim until its jobs are taken in, so that whoever compares with the database does not take them
    /// for lost.
    pub(crate) fn claiming(&self) -> MutexGuard<'_, ()> {
        self.claiming.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn take(&self, id: i64, attempts: i32) {
        self.jobs().insert(id, attempts);
    }

    pub(crate) fn put_down(&self, id: i64, attempts: i32) {
        let mut jobs = self.jobs();
        // A later claim of the same job may have taken its place.
        if jobs.get(&id) == Some(&attempts) {
            jobs.remove(&id);
        }
    }

    pub(crate) fn holds(&self, id: i64, attempts: i32) -> bool {
        self.jobs().get(&id) == Some(&attempts)
    }

    pub(crate) fn count(&self) -> usize {
        self.jobs().len()
    }

    fn jobs(&self) -> MutexGuard<'_, HashMap<i64, i32>> {
        self.jobs.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
