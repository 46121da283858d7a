//! A mutex for long work, with no transaction open.

mod claim;
mod fence;
mod hold;
mod keeper;
mod options;
mod trust;

pub(crate) use claim::Claim;
pub(crate) use keeper::Keeper;
pub use options::LeaseOptions;

use crate::connect::on_idle;
use crate::{Connect, LockError};
use std::collections::HashSet;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::{self, ThreadId};
use std::time::Duration;

/// How long to pause between two looks at a lease that is held, on average.
pub(crate) const PAUSE: Duration = Duration::from_millis(50);

/// What a closure gets that runs under a lease. It may be shared among the closure's threads.
///
/// What it does in [`transaction`](Lease::transaction) is fenced: it is committed only if the lease was this one's to the
/// commit. For everything else there are [`check`](Lease::check), which costs nothing and must be called often enough, and
/// [`token`](Lease::token), by which the other side can refuse who comes too late.
pub struct Lease<M: Connect> {
    connections: M,
    claim: Arc<Claim>,
    /// Connections for fenced transactions, in no transaction.
    idle: Mutex<Vec<M::Conn>>,
    /// The threads that are in a fenced transaction.
    inside: Mutex<HashSet<ThreadId>>,
}

impl<M: Connect> Lease<M> {
    pub(crate) fn new(connections: M, claim: Arc<Claim>) -> Self {
        Self {
            connections,
            claim,
            idle: Mutex::default(),
            inside: Mutex::default(),
        }
    }

    /// The lock's name.
    pub fn name(&self) -> &str {
        &self.claim.name
    }

    /// The fencing token: each holder's is higher than every earlier holder's, of leases and of
    /// [`Lock::synchronize`](crate::Lock::synchronize) alike. Send it along with effects outside the database, and let the
    /// other side refuse a token that is lower than one it has seen.
    pub fn token(&self) -> i64 {
        self.claim.token
    }

    /// Whether the lease is another's, or may be: it was found to be lost, or was not renewed for so long that it may have
    /// ended. In the second case it is trusted again when the database says that nobody else has had it meanwhile.
    ///
    /// It asks no database: trust ends one time to live after the start of the last renewal that succeeded, less a tenth,
    /// by the monotonic clock or the wall clock, whichever says it is later.
    pub fn is_lost(&self) -> bool {
        self.claim.trust.is_over()
    }

    /// As [`is_lost`](Lease::is_lost), for `?`.
    ///
    /// # Errors
    /// [`LockError::LeaseLost`].
    pub fn check(&self) -> Result<(), LockError> {
        self.claim.check()
    }

    /// Asks the database, and renews the lease at once, as before an effect that takes long. It need not be called
    /// otherwise: a lease is renewed in the background.
    ///
    /// # Errors
    /// [`LockError::LeaseLost`], [`LockError::Nested`] inside a fenced transaction of the same thread, or the database's.
    pub fn renew(&self) -> Result<(), LockError> {
        let _inside = self.enter()?;
        // No answer could change that, and a file may be too busy for one.
        if self.claim.trust.is_lost_for_good() {
            return Err(self.claim.lost());
        }
        let (conn, renewed) = on_idle(&self.connections, self.take_idle(), |conn| self.claim.renew(conn));
        lock(&self.idle).extend(conn);
        if renewed? { Ok(()) } else { Err(self.claim.lost()) }
    }

    /// Runs `work` in a transaction whose first statement proves that the lease is this one's, and keeps the lock's row
    /// locked to the commit: until then nobody can take the lease, even if it expires. So of two who both believe to
    /// have it, only one commits. The isolation level is READ COMMITTED.
    ///
    /// The lease cannot be renewed meanwhile, so that a transaction that lasts longer than the time to live puts the lease
    /// in doubt ([`is_lost`](Lease::is_lost)) until it commits. Fenced transactions of one lease run one at a time; one
    /// inside another, on the same thread, is an error. (Do not wait inside one for a thread that wants another.)
    ///
    /// ```
    /// # #[cfg(feature = "sqlite")]
    /// # fn main() -> anyhow::Result<()> {
    /// # let db = job_test::sqlite::Db::new();
    /// # let pool = db.pool(4);
    /// # db.execute("CREATE TABLE imported (day TEXT)");
    /// # job_lock::Lock::create(&mut db.connect(), "import")?;
    /// use diesel::prelude::*;
    /// use job_lock::Lock;
    /// use std::time::Duration;
    ///
    /// let connections = pool.clone(); // or Arc::new(ConnectionManager::<PgConnection>::new(&url))
    /// Lock::lease(&connections, "import", Duration::from_secs(30), |lease| {
    ///     // ... a download of an hour, with lease.check()? now and then ...
    ///     lease.transaction(|conn| {
    ///         diesel::sql_query("INSERT INTO imported VALUES ('today')").execute(conn)?;
    ///         anyhow::Ok(())
    ///     })
    /// })?;
    /// # Ok(())
    /// # }
    /// # #[cfg(not(feature = "sqlite"))]
    /// # fn main() {}
    /// ```
    ///
    /// # Errors
    /// The closure's, as it is; [`LockError::LeaseLost`] or [`LockError::Nested`], and the closure did not run;
    /// [`LockError::Lost`] where the transaction was over before the closure was; or the database's. Nothing is committed
    /// then, but for what [`Lost`](LockError::Lost) tells, and where the connection was lost at the COMMIT, when all may be.
    ///
    /// # Panics
    /// When the closure does, after a rollback.
    pub fn transaction<T, E>(&self, work: impl FnOnce(&mut M::Conn) -> Result<T, E>) -> Result<T, E>
    where
        E: From<LockError>,
    {
        let _inside = self.enter()?;
        if self.claim.trust.is_lost_for_good() {
            return Err(self.claim.lost().into());
        }
        let (conn, result) = fence::fenced(&self.connections, self.take_idle(), &self.claim, work);
        lock(&self.idle).extend(conn);
        result
    }

    /// A second transaction would wait for the first one's lock on the row, and so for itself.
    fn enter(&self) -> Result<Inside<'_>, LockError> {
        let thread = thread::current().id();
        if !lock(&self.inside).insert(thread) {
            return Err(LockError::Nested(self.claim.name.clone()));
        }
        Ok(Inside {
            threads: &self.inside,
            thread,
        })
    }

    fn take_idle(&self) -> Option<M::Conn> {
        lock(&self.idle).pop()
    }

    /// Counts it as lost for good, whatever the database says later.
    pub(crate) fn concede(&self) {
        self.claim.trust.lose();
    }

    pub(crate) fn trusted_for(&self) -> Duration {
        self.claim.trust.left()
    }
}

impl<M: Connect> fmt::Debug for Lease<M> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Lease")
            .field("name", &self.claim.name)
            .field("token", &self.claim.token)
            .finish_non_exhaustive()
    }
}

struct Inside<'a> {
    threads: &'a Mutex<HashSet<ThreadId>>,
    thread: ThreadId,
}

impl Drop for Inside<'_> {
    fn drop(&mut self) {
        lock(self.threads).remove(&self.thread);
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
