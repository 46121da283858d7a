use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// Locks, whether or not another thread panicked: nothing that may panic is called under these locks uncaught.
pub(super) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Waits on the condition.
pub(super) fn wait<'a, T>(condition: &Condvar, guard: MutexGuard<'a, T>) -> MutexGuard<'a, T> {
    condition.wait(guard).unwrap_or_else(PoisonError::into_inner)
}

/// Waits on the condition, at most so long.
pub(super) fn wait_at_most<'a, T>(
    condition: &Condvar,
    guard: MutexGuard<'a, T>,
    longest: Duration,
) -> MutexGuard<'a, T> {
    let waited = condition.wait_timeout(guard, longest);
    waited.unwrap_or_else(PoisonError::into_inner).0
}
