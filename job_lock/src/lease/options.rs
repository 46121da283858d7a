use super::{Lease, hold};
use crate::{Connect, LockError, Wait, name};
use std::time::Duration;

/// SQLite's clock has milliseconds.
const SHORTEST: Duration = Duration::from_millis(10);
/// A time that a database cannot hold would be no time, and no lease.
const LONGEST: Duration = Duration::from_secs(366 * 24 * 3600);

/// A lease that is about to be taken, with what is to be different from [`Lock::lease`](crate::Lock::lease). Made by
/// [`Lock::lease_on`](crate::Lock::lease_on).
///
/// ```
/// # #[cfg(feature = "sqlite")]
/// # fn main() -> Result<(), job_lock::LockError> {
/// # let db = job_test::sqlite::Db::new();
/// # let pool = db.pool(4);
/// use job_lock::{Lock, LockError, Wait};
/// use std::time::Duration;
///
/// let minute = Duration::from_secs(60);
/// let connections = pool.clone(); // or Arc::new(ConnectionManager::<PgConnection>::new(&url))
/// Lock::lease_on("nightly-import", minute)
///     .create_missing()
///     .wait(Wait::No)
///     .renew_every(Duration::from_secs(10))
///     .lock_at_least(5 * minute)
///     .hold(&connections, |_lease| Ok::<_, LockError>(()))?;
///
/// // It was over in no time, and yet another machine's timer that comes a little later does not start it again.
/// let again = Lock::lease_on("nightly-import", minute)
///     .wait(Wait::No)
///     .hold(&connections, |_lease| Ok::<_, LockError>(()));
/// assert!(matches!(again, Err(LockError::Busy(_))));
/// # Ok(())
/// # }
/// # #[cfg(not(feature = "sqlite"))]
/// # fn main() {}
/// ```
#[derive(Clone, Debug)]
#[must_use = "call hold"]
pub struct LeaseOptions {
    pub(crate) name: String,
    pub(crate) ttl: Duration,
    pub(crate) wait: Wait,
    pub(crate) create_missing: bool,
    pub(crate) at_least: Duration,
    renew_every: Option<Duration>,
}

impl LeaseOptions {
    pub(crate) fn new(name: &str, ttl: Duration) -> Self {
        Self {
            name: name.to_owned(),
            ttl,
            wait: Wait::default(),
            create_missing: false,
            at_least: Duration::ZERO,
            renew_every: None,
        }
    }

    /// How long to wait; forever, if not said. There is no queue for leases: the calling thread looks some twenty times a
    /// second, with jitter.
    ///
    /// On SQLite who writes to the file stands in the way of every lease, free or not, and with [`Wait::No`] a look gives up
    /// on the file after 20 ms: where a lease that is free must not be passed over, wait for longer than others write.
    pub fn wait(mut self, wait: Wait) -> Self {
        self.wait = wait;
        self
    }

    /// How often the lease is renewed while it is held; three times in its time to live, if not said.
    pub fn renew_every(mut self, interval: Duration) -> Self {
        self.renew_every = Some(interval);
        self
    }

    /// Keeps others out for so long from the beginning, however early the closure ends. It is for timers on several
    /// machines, whose clocks differ: a short run would otherwise be over when the second one's timer fires.
    pub fn lock_at_least(mut self, time: Duration) -> Self {
        self.at_least = time.min(LONGEST);
        self
    }

    /// Makes the lock first if there is none.
    pub fn create_missing(mut self) -> Self {
        self.create_missing = true;
        self
    }

    /// Takes the lease, runs `closure`, and gives the lease back.
    ///
    /// # Errors
    /// As [`Lock::lease`](crate::Lock::lease).
    ///
    /// # Panics
    /// When the closure does, after the lease was given back.
    pub fn hold<M, T, E>(
        &self,
        connections: &M,
        closure: impl FnOnce(&Lease<M>) -> Result<T, E>,
    ) -> Result<T, E>
    where
        M: Connect,
        E: From<LockError>,
    {
        hold::hold(self, connections, closure)
    }

    pub(crate) fn check(&self) -> Result<(), LockError> {
        name::check(&self.name)?;
        let interval = self.interval();
        let fits = (SHORTEST..=LONGEST).contains(&self.ttl)
            && !interval.is_zero()
            && interval.checked_mul(2).is_some_and(|twice| twice <= self.ttl);
        if fits {
            return Ok(());
        }
        Err(LockError::InvalidTtl {
            ttl: self.ttl,
            renew_every: interval,
        })
    }

    pub(crate) fn interval(&self) -> Duration {
        self.renew_every.unwrap_or(self.ttl / 3)
    }

    /// How much earlier than by the database's clock the lease ends for its holder: two clocks do not run equally fast, and
    /// an answer of this process takes its time.
    pub(crate) fn margin(&self) -> Duration {
        self.ttl / 10
    }
}
