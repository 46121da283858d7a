//! Notifications wake workers that would else look again a little later. They are hints: everything works, slower,
//! without one.

use crate::JobConnection;
use std::sync::LazyLock;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// A notification takes a lock of the whole database at commit, so a process sends one in this time at most.
const PAUSE: Duration = Duration::from_millis(10);

static ENABLED: AtomicBool = AtomicBool::new(true);
static START: LazyLock<Instant> = LazyLock::new(Instant::now);
/// When this process last sent one, in microseconds from `START`, plus one; 0 for never.
static LAST: AtomicU64 = AtomicU64::new(0);

/// Switches this process's notifications off, or on again: an app that enqueues thousands of jobs a second, or that connects
/// through a proxy which pools transactions, may do without.
pub fn set_enabled(enabled: bool) {
    ENABLED.store(enabled, Ordering::Relaxed);
}

/// Whether a notification should be sent now; if so, it is taken as sent.
pub(crate) fn due() -> bool {
    if !ENABLED.load(Ordering::Relaxed) {
        return false;
    }
    let now = u64::try_from(START.elapsed().as_micros()).unwrap_or(u64::MAX - 1) + 1;
    let last = LAST.load(Ordering::Relaxed);
    let pause = u64::try_from(PAUSE.as_micros()).unwrap_or(0);
    (last == 0 || now.saturating_sub(last) >= pause)
        && LAST
            .compare_exchange(last, now, Ordering::Relaxed, Ordering::Relaxed)
            .is_ok()
}

/// Wakes the workers after something was recorded, for which a hint that fails has no consequence.
pub(crate) fn wake<C: JobConnection>(conn: &mut C) {
    if let Err(error) = crate::verbs::blocking::wake::wake(conn) {
        log::debug!("gatun: could not notify: {error}");
    }
}

/// Begins to listen on this connection; `false` where the database, the connection or the features of this build cannot.
///
/// # Errors
/// What the database says.
pub fn listen<C: JobConnection + 'static>(conn: &mut C) -> diesel::QueryResult<bool> {
    crate::backend::listen(conn)
}

/// Whether a notification has come since the last call; never waits.
///
/// # Errors
/// Where the connection is lost.
pub fn received<C: JobConnection + 'static>(conn: &mut C) -> diesel::QueryResult<bool> {
    crate::backend::received(conn)
}

/// Calls `work` once while bytes that the database has sent stand unread in this connection's socket, and reads them
/// afterwards. This is how a worker finds the socket, to wait on it: Diesel does not tell which one it is. `false` where the
/// database, the connection or the features of this build cannot, and then `work` is not called.
///
/// # Errors
/// What the database says.
pub fn while_unread<C: JobConnection + 'static>(
    conn: &mut C,
    work: &mut dyn FnMut(),
) -> diesel::QueryResult<bool> {
    crate::backend::while_unread(conn, work)
}
