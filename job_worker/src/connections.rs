use anyhow::anyhow;
use diesel::connection::CacheSize;
use diesel::r2d2::{
    ConnectionManager, CustomizeConnection, Error, HandleError, ManageConnection, Pool, R2D2Connection,
};
use job_core::{Connections, Database, JobConnection, without_secrets};
use std::any::Any;
use std::sync::{Arc, OnceLock};

/// Diesel's manager, shared between the worker's own connections and the pool for its jobs; it is no `Clone` itself.
pub(crate) struct Manager<C: R2D2Connection + 'static>(Arc<ConnectionManager<C>>);

impl<C: R2D2Connection + 'static> Manager<C> {
    pub(crate) fn new(manager: ConnectionManager<C>) -> Self {
        Manager(Arc::new(manager))
    }
}

impl<C: R2D2Connection + 'static> Clone for Manager<C> {
    fn clone(&self) -> Self {
        Manager(Arc::clone(&self.0))
    }
}

impl<C: R2D2Connection + 'static> ManageConnection for Manager<C> {
    type Connection = C;
    type Error = Error;

    fn connect(&self) -> Result<C, Error> {
        self.0.connect()
    }

    fn is_valid(&self, conn: &mut C) -> Result<(), Error> {
        self.0.is_valid(conn)
    }

    fn has_broken(&self, conn: &mut C) -> bool {
        self.0.has_broken(conn)
    }
}

/// From where a job gets a connection when it asks.
pub(crate) enum JobPool<C: R2D2Connection + 'static> {
    /// The app's pool.
    App(Pool<ConnectionManager<C>>),
    /// The worker's own, made when the first job asks.
    Own {
        manager: Manager<C>,
        size: u32,
        pooler: bool,
        pool: OnceLock<Pool<Manager<C>>>,
    },
}

impl<C> JobPool<C>
where
    C: JobConnection + R2D2Connection + 'static,
{
    pub(crate) fn own(manager: Manager<C>, size: u32, pooler: bool) -> Self {
        JobPool::Own {
            manager,
            size,
            pooler,
            pool: OnceLock::new(),
        }
    }
}

impl<C: R2D2Connection + 'static> JobPool<C> {
    /// How many connections there may be.
    #[cfg(feature = "tokio")]
    pub(crate) fn size(&self) -> usize {
        let size = match self {
            JobPool::App(pool) => pool.max_size(),
            JobPool::Own { size, .. } => *size,
        };
        size as usize
    }
}

impl<C> Connections for JobPool<C>
where
    C: JobConnection + R2D2Connection + 'static,
{
    fn with(&self, work: &mut dyn FnMut(&mut dyn Any)) -> anyhow::Result<()> {
        match self {
            JobPool::App(pool) => work(&mut *pool.get().map_err(no_connection)?),
            JobPool::Own {
                manager,
                size,
                pooler,
                pool,
            } => {
                let pool = pool.get_or_init(|| {
                    Pool::builder()
                        .max_size(*size)
                        .min_idle(Some(0))
                        .error_handler(Box::new(Masked))
                        .connection_customizer(Box::new(Prepare { pooler: *pooler }))
                        .build_unchecked(manager.clone())
                });
                let mut conn = pool.get().map_err(no_connection)?;
                work(&mut *conn);
                if !pooler {
                    // The next job must not work in it, and lose what it did. (Behind a pooler the question may meet another
                    // session of the server than the one that it asks about.)
                    <C::Db as Database>::end_forgotten_transaction(&mut *conn);
                }
            }
        }
        Ok(())
    }

    fn type_name(&self) -> Option<&'static str> {
        Some(std::any::type_name::<C>())
    }
}

/// What a pool says repeats what the client library says of a URL.
fn no_connection(error: impl ToString) -> anyhow::Error {
    let shown = without_secrets(&error.to_string());
    anyhow!("no database connection for the job: {shown}")
}

/// Logs why a pool has no connection, which the pool itself would do with all that a client library says.
#[derive(Debug)]
struct Masked;

impl HandleError<Error> for Masked {
    fn handle_error(&self, error: Error) {
        log::warn!("gatun worker: {:#}", no_connection(error));
    }
}

/// Gives a new connection what it lacks for use beside others.
#[derive(Debug)]
struct Prepare {
    pooler: bool,
}

impl<C> CustomizeConnection<C, Error> for Prepare
where
    C: JobConnection + R2D2Connection + 'static,
{
    fn on_acquire(&self, conn: &mut C) -> Result<(), Error> {
        if self.pooler {
            conn.set_prepared_statement_cache_size(CacheSize::Disabled);
        }
        <C::Db as Database>::prepare_shared(conn).map_err(Error::QueryError)
    }
}
