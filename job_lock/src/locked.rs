use crate::{Lock, LockConnection, LockError};

/// What a closure gets that runs under a lock: the connection, and the lock's token.
///
/// The closure's writes through [`conn`](Locked::conn) are in the lock's own transaction, so that they are committed only if
/// the lock was held to the end. For effects outside the database there is the [`token`](Locked::token).
#[derive(Debug)]
pub struct Locked<'a, C> {
    pub(crate) conn: &'a mut C,
    pub(crate) tokens: &'a [(&'a str, i64)],
}

impl<C: LockConnection> Locked<'_, C> {
    /// The connection, inside the lock's transaction. Do not commit or roll back by hand.
    pub fn conn(&mut self) -> &mut C {
        self.conn
    }

    /// The name of the lock; the first by the alphabet, where there are several.
    pub fn name(&self) -> &str {
        self.tokens[0].0
    }

    /// The fencing token: each holder's is higher than every earlier holder's. Send it along with effects outside the
    /// database, and let the other side refuse a token that is lower than one it has seen: a process that was
    /// suspended while its session was killed does not know that it has lost the lock.
    ///
    /// A token whose transaction was rolled back is given out again.
    ///
    /// ```
    /// # #[cfg(feature = "sqlite")] {
    /// # use diesel::Connection;
    /// # let conn = &mut diesel::SqliteConnection::establish(":memory:").unwrap();
    /// # job_lock::migrate(conn).unwrap();
    /// use job_lock::{Lock, LockError};
    ///
    /// Lock::create(conn, "nightly-report")?;
    /// let first = Lock::synchronize(conn, "nightly-report", |locked| Ok::<_, LockError>(locked.token()))?;
    /// let second = Lock::synchronize(conn, "nightly-report", |locked| Ok::<_, LockError>(locked.token()))?;
    /// assert!(second > first);
    /// # }
    /// # Ok::<(), job_lock::LockError>(())
    /// ```
    pub fn token(&self) -> i64 {
        self.tokens[0].1
    }

    /// All names with their tokens, in the order in which they were taken.
    pub fn tokens(&self) -> &[(&str, i64)] {
        self.tokens
    }

    /// Takes another lock inside this one, and holds it until this one ends. Two transactions that nest the same locks in
    /// opposite order end in [`LockError::Deadlock`] for one of them; [`Lock::synchronize_all`] takes several in a
    /// fixed order.
    ///
    /// ```
    /// # #[cfg(feature = "sqlite")] {
    /// # use diesel::Connection;
    /// # let conn = &mut diesel::SqliteConnection::establish(":memory:").unwrap();
    /// # job_lock::migrate(conn).unwrap();
    /// use job_lock::{Lock, LockError};
    ///
    /// Lock::create(conn, "books")?;
    /// Lock::create(conn, "archive")?;
    /// Lock::synchronize(conn, "books", |books| {
    ///     books.synchronize("archive", |archive| {
    ///         assert_eq!(archive.name(), "archive");
    ///         Ok::<_, LockError>(())
    ///     })
    /// })?;
    /// # }
    /// # Ok::<(), job_lock::LockError>(())
    /// ```
    ///
    /// # Errors
    /// As [`Lock::synchronize`].
    pub fn synchronize<T, E>(
        &mut self,
        name: &str,
        closure: impl FnOnce(&mut Locked<'_, C>) -> Result<T, E>,
    ) -> Result<T, E>
    where
        E: From<LockError>,
    {
        Lock::on(name).join().synchronize(self.conn, closure)
    }
}
