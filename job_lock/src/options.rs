use crate::{LockConnection, LockError, Locked, Wait, name, synchronize};
use std::time::Duration;

/// A lock that is about to be taken, with what is to be different from [`Lock::synchronize`](crate::Lock::synchronize).
/// Made by [`Lock::on`](crate::Lock::on) and [`Lock::on_all`](crate::Lock::on_all).
///
/// ```
/// # #[cfg(feature = "sqlite")] {
/// # use diesel::Connection;
/// # let conn = &mut diesel::SqliteConnection::establish(":memory:").unwrap();
/// # job_lock::migrate(conn).unwrap();
/// use job_lock::{Lock, LockError, Wait};
/// use std::time::Duration;
///
/// Lock::on("nightly-report")
///     .wait(Wait::AtMost(Duration::from_secs(5)))
///     .create_missing()
///     .warn_after(Duration::from_secs(60))
///     .synchronize(conn, |_| Ok::<_, LockError>(()))?;
/// # }
/// # Ok::<(), job_lock::LockError>(())
/// ```
#[derive(Clone, Debug)]
#[must_use = "call synchronize"]
pub struct LockOptions<'a> {
    pub(crate) names: Vec<&'a str>,
    pub(crate) wait: Wait,
    pub(crate) join: bool,
    pub(crate) create_missing: bool,
    pub(crate) warn_after: Option<Duration>,
}

impl<'a> LockOptions<'a> {
    /// In the order in which everybody takes them.
    pub(crate) fn new(mut names: Vec<&'a str>) -> Self {
        names.sort_unstable();
        names.dedup();
        Self {
            names,
            wait: Wait::default(),
            join: false,
            create_missing: false,
            warn_after: None,
        }
    }

    /// How long to wait; forever, if not said. The time is for all names together.
    pub fn wait(mut self, wait: Wait) -> Self {
        self.wait = wait;
        self
    }

    /// Where the connection is in a transaction, takes the lock in it. The lock is then held until that transaction ends,
    /// not only until the closure ends; if the closure fails, its own writes are rolled back, and the transaction
    /// can go on (on MySQL and MariaDB not after [`LockError::Deadlock`], which ends it).
    ///
    /// The transaction keeps its isolation level. If it has looked at the database before the last holder of the lock
    /// has changed it, the result is [`LockError::Serialization`] rather than a closure that works on what is out of
    /// date; at REPEATABLE READ and above that may also come of a wait for the holder. (At READ UNCOMMITTED what else the
    /// closure sees is the caller's own affair.)
    ///
    /// A lease on the name is not waited for: it is [`LockError::Busy`] at once.
    ///
    /// Where the connection is in no transaction, this changes nothing.
    pub fn join(mut self) -> Self {
        self.join = true;
        self
    }

    /// Makes locks that do not exist, each committed in a transaction of its own first. That is impossible inside a
    /// transaction, and an error there.
    pub fn create_missing(mut self) -> Self {
        self.create_missing = true;
        self
    }

    /// Logs a warning when the lock was held longer than this, at its end: nothing watches it before.
    pub fn warn_after(mut self, limit: Duration) -> Self {
        self.warn_after = Some(limit);
        self
    }

    /// Takes the lock, runs `closure` in its transaction, and commits.
    ///
    /// # Errors
    /// The closure's, as it is; else a [`LockError`].
    ///
    /// # Panics
    /// When the closure does, after a rollback.
    pub fn synchronize<C, T, E>(
        &self,
        conn: &mut C,
        closure: impl FnOnce(&mut Locked<'_, C>) -> Result<T, E>,
    ) -> Result<T, E>
    where
        C: LockConnection,
        E: From<LockError>,
    {
        if self.names.is_empty() {
            return Err(LockError::NoNames.into());
        }
        for name in &self.names {
            name::check(name)?;
        }
        synchronize::synchronize(self, conn, closure)
    }
}
