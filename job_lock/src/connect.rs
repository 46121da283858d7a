use crate::{LockConnection, LockError};
use diesel::connection::CacheSize;
use diesel::r2d2::{ConnectionManager, ManageConnection, Pool, PooledConnection, R2D2Connection};
use std::sync::Arc;

/// Where leases, leaders and slots get their own connections: a pool, or an `Arc` of a manager. (Or a type of yours, for
/// connections that need some setting.)
///
/// A manager is the better choice where a lease is long: it keeps one connection for itself as long as it lasts, and with a
/// pool that is one that the app has not.
///
/// ```
/// # #[cfg(feature = "sqlite")] {
/// use diesel::SqliteConnection;
/// use diesel::r2d2::{ConnectionManager, Pool};
/// use job_lock::Connect;
/// use std::sync::Arc;
///
/// let manager = Arc::new(ConnectionManager::<SqliteConnection>::new(":memory:"));
/// let conn = manager.connect().unwrap();
/// # drop(conn);
/// # }
/// ```
pub trait Connect: Clone + Send + Sync + 'static {
    /// What it connects with.
    type Conn: LockConnection + Send + 'static;

    /// A connection that is in no transaction.
    ///
    /// # Errors
    /// [`LockError::NoConnection`].
    fn connect(&self) -> Result<Self::Conn, LockError>;
}

impl<C> Connect for Pool<ConnectionManager<C>>
where
    C: LockConnection + R2D2Connection + 'static,
{
    type Conn = PooledConnection<ConnectionManager<C>>;

    fn connect(&self) -> Result<Self::Conn, LockError> {
        self.get()
            .map_err(|error| LockError::NoConnection(error.to_string()))
    }
}

impl<C> Connect for Arc<ConnectionManager<C>>
where
    C: LockConnection + R2D2Connection + 'static,
{
    type Conn = C;

    fn connect(&self) -> Result<C, LockError> {
        ManageConnection::connect(&**self).map_err(|error| LockError::NoConnection(error.to_string()))
    }
}

/// Connections that keep no prepared statements, as a proxy needs that gives each transaction to another session, such as
/// PgBouncer in transaction mode: a statement that was prepared in one session is unknown to the next. (PgBouncer knows how
/// to deal with that from 1.21 on, if `max_prepared_statements` is set.)
///
/// A connection that is not from here needs the same:
/// `conn.set_prepared_statement_cache_size(CacheSize::Disabled)`.
///
/// ```
/// # #[cfg(feature = "sqlite")]
/// # fn main() -> Result<(), job_lock::LockError> {
/// # let db = job_test::sqlite::Db::new();
/// # let manager = std::sync::Arc::new(db.manager());
/// # job_lock::Lock::create(&mut db.connect(), "import")?;
/// use job_lock::{Lock, LockError, Unprepared};
/// use std::time::Duration;
///
/// let manager = Unprepared(manager);
/// Lock::lease(&manager, "import", Duration::from_secs(30), |_lease| Ok::<_, LockError>(()))
/// # }
/// # #[cfg(not(feature = "sqlite"))]
/// # fn main() {}
/// ```
#[derive(Clone, Debug)]
pub struct Unprepared<M>(pub M);

impl<M: Connect> Connect for Unprepared<M> {
    type Conn = M::Conn;

    fn connect(&self) -> Result<M::Conn, LockError> {
        use diesel::connection::Connection;
        let mut conn = self.0.connect()?;
        conn.set_prepared_statement_cache_size(CacheSize::Disabled);
        Ok(conn)
    }
}
