use crate::backend::LockBackend;
use crate::{LockConnection, LockError};
use diesel::connection::CacheSize;
use diesel::r2d2::{ConnectionManager, ManageConnection, Pool, PooledConnection, R2D2Connection};
use diesel::result::QueryResult;
use job_db::{Database, DbConnection, Fault, without_secrets};
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
#[diagnostic::on_unimplemented(
    message = "`{Self}` gives no connections for leases, leaders and slots",
    note = "give a `&Pool<ConnectionManager<…>>` or an `&Arc<ConnectionManager<…>>`"
)]
pub trait Connect: Clone + Send + Sync + 'static {
    /// What it connects with.
    type Conn: LockConnection + Send + 'static;

    /// A connection that is in no transaction.
    ///
    /// # Errors
    /// [`LockError::Refused`] where another try would not do better, [`LockError::NoConnection`] else.
    fn connect(&self) -> Result<Self::Conn, LockError>;
}

/// A new connection, or one from the pool.
///
/// # Errors
/// As [`Connect::connect`]; and where the connection is in a transaction, in which a lease would be nobody's.
pub(crate) fn connect<M: Connect>(connections: &M) -> Result<M::Conn, LockError> {
    let mut conn = connections.connect()?;
    if job_db::transaction_depth(&mut conn) > 0 {
        return Err(LockError::OpenTransaction);
    }
    Ok(conn)
}

/// What was done on a connection, with the connection; which after an error may be good for nothing more.
type Done<C, T> = Result<(C, T), (Option<C>, LockError)>;

/// Does `work` on `idle`, and once more on a new connection if that one has died while nothing was done with it.
pub(crate) fn keeping_idle<M: Connect, T>(
    connections: &M,
    idle: Option<M::Conn>,
    mut work: impl FnMut(&mut M::Conn) -> QueryResult<T>,
) -> Done<M::Conn, T> {
    if let Some(mut conn) = idle {
        match work(&mut conn) {
            Err(error) if fault::<M>(&error) == Fault::Disconnected => {}
            result => return kept(conn, result),
        }
    }
    let mut conn = connect(connections).map_err(|error| (None, error))?;
    let result = work(&mut conn);
    kept(conn, result)
}

/// The same, for whoever keeps the connection whatever comes of it.
pub(crate) fn on_idle<M: Connect, T>(
    connections: &M,
    idle: Option<M::Conn>,
    work: impl FnMut(&mut M::Conn) -> QueryResult<T>,
) -> (Option<M::Conn>, Result<T, LockError>) {
    match keeping_idle(connections, idle, work) {
        Ok((conn, value)) => (Some(conn), Ok(value)),
        Err((conn, error)) => (conn, Err(error)),
    }
}

/// An error may be the connection's, and a new one costs little.
fn kept<C: LockConnection, T>(conn: C, result: QueryResult<T>) -> Done<C, T> {
    match result {
        Ok(value) => Ok((conn, value)),
        Err(error) => {
            let is_good = C::Db::fault(&error) == Fault::Contended;
            Err((is_good.then_some(conn), error.into()))
        }
    }
}

fn fault<M: Connect>(error: &diesel::result::Error) -> Fault {
    <M::Conn as DbConnection>::Db::fault(error)
}

fn no_connection<C: LockConnection>(error: &impl ToString) -> LockError {
    let message = error.to_string();
    let shown = without_secrets(&message);
    if C::Db::refuses(&message) {
        LockError::Refused(shown)
    } else {
        LockError::NoConnection(shown)
    }
}

impl<C> Connect for Pool<ConnectionManager<C>>
where
    C: LockConnection + R2D2Connection + 'static,
{
    type Conn = PooledConnection<ConnectionManager<C>>;

    fn connect(&self) -> Result<Self::Conn, LockError> {
        self.get().map_err(|error| no_connection::<C>(&error))
    }
}

impl<C> Connect for Arc<ConnectionManager<C>>
where
    C: LockConnection + R2D2Connection + 'static,
{
    type Conn = C;

    fn connect(&self) -> Result<C, LockError> {
        ManageConnection::connect(&**self).map_err(|error| no_connection::<C>(&error))
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
