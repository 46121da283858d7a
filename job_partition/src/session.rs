use crate::parts::jittered;
use crate::run::{Conn, Db, Shared, Stop};
use crate::{PartitionBackend, PartitionConnection, PartitionError};
use diesel::connection::{CacheSize, Connection};
use diesel::r2d2::ManageConnection;
use job_db::without_secrets;
use std::time::{Duration, Instant};

const FIRST_PAUSE: Duration = Duration::from_millis(10);
const LONGEST_PAUSE: Duration = Duration::from_secs(2);

/// A thread's connection, which is opened again when it was lost.
pub(crate) struct Session<M: ManageConnection>(Option<Conn<M>>);

impl<M: ManageConnection> Session<M>
where
    M::Connection: PartitionConnection,
{
    pub(crate) fn new(conn: Option<Conn<M>>) -> Self {
        Session(conn)
    }

    /// For a connection in an unknown state; the server rolls back what is open on it.
    pub(crate) fn discard(&mut self) {
        self.0 = None;
    }

    /// The connection, opened if there is none; `None` where that fails.
    pub(crate) fn connect_at_once(&mut self, shared: &Shared<'_, M>) -> Option<&mut Conn<M>> {
        if self.0.is_none() {
            self.0 = open(shared.manager, shared.partition.cache)
                .inspect_err(|error| log::warn!("gatun partition: no connection: {error}"))
                .ok();
        }
        self.0.as_mut()
    }

    /// The connection, opened if there is none. While the server is away it is tried again as long as patience lasts.
    pub(crate) fn connect(&mut self, shared: &Shared<'_, M>) -> Result<Option<&mut Conn<M>>, Stop> {
        let start = Instant::now();
        let mut pause = FIRST_PAUSE;
        while self.0.is_none() {
            if shared.sweep.end().is_some() {
                return Ok(None);
            }
            match open(shared.manager, shared.partition.cache) {
                Ok(conn) => self.0 = Some(conn),
                Err(error) if start.elapsed() > shared.partition.patience => {
                    return Err(Stop::Error(PartitionError::Connect(error)));
                }
                Err(error) => {
                    log::warn!("gatun partition: no connection: {error}; trying again");
                    if !shared.sleep(jittered(pause)) {
                        return Ok(None);
                    }
                    shared.sweep.progressed(None);
                    pause = (pause * 2).min(LONGEST_PAUSE);
                }
            }
        }
        Ok(self.0.as_mut())
    }
}

/// A new connection, set up.
pub(crate) fn open<M>(manager: &M, cache: CacheSize) -> Result<Conn<M>, String>
where
    M: ManageConnection,
    M::Connection: PartitionConnection,
{
    let mut conn = manager
        .connect()
        .map_err(|error| without_secrets(&error.to_string()))?;
    conn.set_prepared_statement_cache_size(cache);
    Db::<M>::set_up(&mut conn).map_err(|error| error.to_string())?;
    Ok(conn)
}
