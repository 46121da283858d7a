use crate::{Connect, Lease, LockError};
use std::fmt;
use std::thread;
use std::time::{Duration, Instant};

/// How long one look is trusted, since the machine may sleep and the clock be set.
pub(super) const GLANCE: Duration = Duration::from_millis(50);

/// What a leader's closure gets: its leadership, from its beginning to its end.
pub struct Term<'a, M: Connect> {
    lease: &'a Lease<M>,
    stop: &'a (dyn Fn() -> bool + Sync),
}

impl<'a, M: Connect> Term<'a, M> {
    pub(super) fn new(lease: &'a Lease<M>, stop: &'a (dyn Fn() -> bool + Sync)) -> Self {
        Self { lease, stop }
    }

    /// The fencing token: each leader's is higher than every earlier leader's.
    pub fn token(&self) -> i64 {
        self.lease.token()
    }

    /// Whether the leadership is lost or in doubt. It never changes back.
    pub fn is_lost(&self) -> bool {
        let is_lost = self.lease.is_lost();
        if is_lost {
            self.lease.concede();
        }
        is_lost
    }

    /// Whether the closure should end: the leadership is lost, or the process is to stop.
    pub fn is_over(&self) -> bool {
        self.is_lost() || (self.stop)()
    }

    /// As [`is_lost`](Term::is_lost), for `?`.
    ///
    /// # Errors
    /// [`LockError::LeaseLost`].
    pub fn check(&self) -> Result<(), LockError> {
        self.is_lost();
        self.lease.check()
    }

    /// Sleeps for so long, or until the term [is over](Term::is_over), and says whether it goes on.
    pub fn pause(&self, time: Duration) -> bool {
        pause(time, &|| self.is_over());
        !self.is_over()
    }

    /// Runs `work` in a fenced transaction: see [`Lease::transaction`].
    ///
    /// # Errors
    /// As there; and [`LockError::LeaseLost`] without a look at the database once the term is lost.
    ///
    /// # Panics
    /// When `work` does.
    pub fn transaction<T, E>(&self, work: impl FnOnce(&mut M::Conn) -> Result<T, E>) -> Result<T, E>
    where
        E: From<LockError>,
    {
        self.check()?;
        self.lease.transaction(work)
    }
}

impl<M: Connect> fmt::Debug for Term<'_, M> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Term")
            .field("token", &self.token())
            .finish_non_exhaustive()
    }
}

/// Sleeps for so long, or until it is over.
pub(super) fn pause(time: Duration, is_over: &dyn Fn() -> bool) {
    let start = Instant::now();
    while !is_over() {
        let left = time.saturating_sub(start.elapsed());
        if left.is_zero() {
            return;
        }
        thread::sleep(left.min(GLANCE));
    }
}
