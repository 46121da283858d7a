use crate::backend::LockBackend;
use crate::{Connect, Lease, LeaseOptions, LockConnection, LockError, LockOptions, LockRow, Locked, create};
use std::time::Duration;

/// Named locks: a row of the table `locks` is a mutex. See [the crate](crate) for what they guarantee.
#[derive(Clone, Copy, Debug)]
pub enum Lock {}

impl Lock {
    /// Makes the lock, and says whether it did; `false` if there is one. Any number of processes may do it at once: an
    /// app's start is a good place.
    ///
    /// Inside a caller's transaction the lock is there for others after its commit, and until then others who make it wait.
    ///
    /// ```
    /// # #[cfg(feature = "sqlite")] {
    /// # use diesel::Connection;
    /// # let conn = &mut diesel::SqliteConnection::establish(":memory:").unwrap();
    /// # job_lock::migrate(conn).unwrap();
    /// use job_lock::Lock;
    ///
    /// assert!(Lock::create(conn, "nightly-report")?);
    /// assert!(!Lock::create(conn, "nightly-report")?);
    /// # }
    /// # Ok::<(), job_lock::LockError>(())
    /// ```
    ///
    /// # Errors
    /// [`LockError::InvalidName`]; [`LockError::Busy`] where other writers were in the way for a minute, or at once inside a
    /// transaction; [`LockError::Serialization`] inside a transaction that began before another one made
    /// the lock (the caller's transaction can go on); or the database's.
    pub fn create<C: LockConnection>(conn: &mut C, name: &str) -> Result<bool, LockError> {
        create::create(conn, name)
    }

    /// Takes the lock, waits for it as long as it must, runs `closure` in the lock's transaction, and commits. The lock is
    /// held for exactly as long as that transaction.
    ///
    /// Inside the closure the same lock may be asked for again on the same connection: the inner closure then runs
    /// inline, in a savepoint of its own, with the same token. On another connection, also of the same thread, it waits.
    ///
    /// ```
    /// # #[cfg(feature = "sqlite")]
    /// # fn main() -> anyhow::Result<()> {
    /// # use diesel::Connection;
    /// # let conn = &mut diesel::SqliteConnection::establish(":memory:").unwrap();
    /// # job_lock::migrate(conn).unwrap();
    /// use diesel::prelude::*;
    /// use job_lock::Lock;
    ///
    /// # diesel::sql_query("CREATE TABLE reports (day TEXT)").execute(conn)?;
    /// Lock::create(conn, "nightly-report")?;
    /// let rows = Lock::synchronize(conn, "nightly-report", |locked| {
    ///     let rows = diesel::sql_query("INSERT INTO reports VALUES ('today')").execute(locked.conn())?;
    ///     anyhow::Ok(rows)
    /// })?;
    /// assert_eq!(rows, 1);
    /// # Ok(())
    /// # }
    /// # #[cfg(not(feature = "sqlite"))]
    /// # fn main() {}
    /// ```
    ///
    /// # Errors
    /// The closure's, as it is; or a [`LockError`] made into it: where there is no such lock, where the connection is in
    /// a transaction, or where the COMMIT failed.
    ///
    /// # Panics
    /// When the closure does, after a rollback; the connection can be used again.
    pub fn synchronize<C, T, E>(
        conn: &mut C,
        name: &str,
        closure: impl FnOnce(&mut Locked<'_, C>) -> Result<T, E>,
    ) -> Result<T, E>
    where
        C: LockConnection,
        E: From<LockError>,
    {
        Self::on(name).synchronize(conn, closure)
    }

    /// Takes several locks for one transaction, in an order that is the same for all who do so, whatever the order of
    /// `names`; so they never wait for each other in a circle.
    ///
    /// ```
    /// # #[cfg(feature = "sqlite")] {
    /// # use diesel::Connection;
    /// # let conn = &mut diesel::SqliteConnection::establish(":memory:").unwrap();
    /// # job_lock::migrate(conn).unwrap();
    /// use job_lock::{Lock, LockError};
    ///
    /// Lock::create(conn, "account-1")?;
    /// Lock::create(conn, "account-2")?;
    /// Lock::synchronize_all(conn, ["account-2", "account-1"], |locked| {
    ///     assert_eq!(locked.tokens(), [("account-1", 1), ("account-2", 1)]);
    ///     Ok::<_, LockError>(())
    /// })?;
    /// # }
    /// # Ok::<(), job_lock::LockError>(())
    /// ```
    ///
    /// # Errors
    /// As [`synchronize`](Lock::synchronize), and [`LockError::NoNames`].
    ///
    /// # Panics
    /// As [`synchronize`](Lock::synchronize).
    pub fn synchronize_all<'a, C, T, E>(
        conn: &mut C,
        names: impl IntoIterator<Item = &'a str>,
        closure: impl FnOnce(&mut Locked<'_, C>) -> Result<T, E>,
    ) -> Result<T, E>
    where
        C: LockConnection,
        E: From<LockError>,
    {
        Self::on_all(names).synchronize(conn, closure)
    }

    /// A lock to be taken with options.
    pub fn on(name: &str) -> LockOptions<'_> {
        LockOptions::new(vec![name])
    }

    /// Several locks to be taken with options, for one transaction. On PostgreSQL each takes a place in the server's table of locks,
    /// which is for all sessions and has some ten thousands (`max_locks_per_transaction` × `max_connections`).
    pub fn on_all<'a>(names: impl IntoIterator<Item = &'a str>) -> LockOptions<'a> {
        LockOptions::new(names.into_iter().collect())
    }

    /// Takes the lock by a lease, waits for it as long as it must, runs `closure` with **no transaction open**, and gives the
    /// lease back. It is for work that takes longer than a transaction should.
    ///
    /// While the closure runs, a thread renews the lease three times in every `ttl`, on a connection of its own. It ends
    /// before this returns, unless its connection hangs. If this process dies, the lease ends by itself after at most `ttl`,
    /// by the database's clock; no other clock matters.
    ///
    /// If the database cannot be reached when the closure has ended, this tries for some five seconds to give the lease back,
    /// logs a warning and returns: the lease then also ends by itself, and keeps others out until it does.
    ///
    /// A lease and [`synchronize`](Lock::synchronize) on the same name exclude each other. A lease is not re-entrant: to ask
    /// for it again inside is to wait for oneself.
    ///
    /// ```
    /// # #[cfg(feature = "sqlite")]
    /// # fn main() -> Result<(), job_lock::LockError> {
    /// # let db = job_test::sqlite::Db::new();
    /// # let pool = db.pool(4);
    /// use job_lock::{Lock, LockError};
    /// use std::time::Duration;
    ///
    /// # let conn = &mut db.connect();
    /// Lock::create(conn, "nightly-import")?;
    /// let connections = pool.clone(); // or Arc::new(ConnectionManager::<PgConnection>::new(&url))
    /// let files = Lock::lease(&connections, "nightly-import", Duration::from_secs(30), |lease| {
    ///     let mut files = 0;
    ///     for _file in ["a.csv", "b.csv"] {
    ///         lease.check()?; // before each step that must not be taken beside another holder
    ///         files += 1;
    ///     }
    ///     Ok::<_, LockError>(files)
    /// })?;
    /// assert_eq!(files, 2);
    /// # Ok(())
    /// # }
    /// # #[cfg(not(feature = "sqlite"))]
    /// # fn main() {}
    /// ```
    ///
    /// # Errors
    /// The closure's, as it is; [`LockError::LeaseLost`] where the lease was lost or nobody could confirm that it was not,
    /// **also where the closure succeeded**; [`LockError::Unknown`]; [`LockError::InvalidTtl`];
    /// [`LockError::NoConnection`], [`LockError::Refused`] or [`LockError::OpenTransaction`] of the connections;
    /// [`LockError::NoThread`]; or the database's.
    ///
    /// # Panics
    /// When the closure does, after the lease was given back.
    pub fn lease<M, T, E>(
        connections: &M,
        name: &str,
        ttl: Duration,
        closure: impl FnOnce(&Lease<M>) -> Result<T, E>,
    ) -> Result<T, E>
    where
        M: Connect,
        E: From<LockError>,
    {
        Self::lease_on(name, ttl).hold(connections, closure)
    }

    /// A lease to be taken with options.
    pub fn lease_on(name: &str, ttl: Duration) -> LeaseOptions {
        LeaseOptions::new(name, ttl)
    }

    /// All locks by name, who holds them and since when, as far as the database shows it: see [`LockRow`]. It locks
    /// nothing, so that nobody is told `Busy` because of it.
    ///
    /// ```
    /// # #[cfg(feature = "sqlite")] {
    /// # use diesel::Connection;
    /// # let conn = &mut diesel::SqliteConnection::establish(":memory:").unwrap();
    /// # job_lock::migrate(conn).unwrap();
    /// use job_lock::Lock;
    ///
    /// Lock::create(conn, "nightly-report")?;
    /// for lock in Lock::list(conn)? {
    ///     println!("{} {:?} {:?} {:?}", lock.name, lock.state, lock.owner, lock.acquired_at);
    /// }
    /// # }
    /// # Ok::<(), job_lock::LockError>(())
    /// ```
    ///
    /// # Errors
    /// The database's.
    pub fn list<C: LockConnection>(conn: &mut C) -> Result<Vec<LockRow>, LockError> {
        C::Db::list(conn).map_err(|error| LockError::from(error).explained(conn))
    }
}
