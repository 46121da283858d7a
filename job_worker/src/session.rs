use crate::WorkerError;
use crate::connections::Manager;
use crate::options::{Options, jittered};
use crate::stop::{Level, StopHandle};
use diesel::connection::CacheSize;
use diesel::r2d2::{ManageConnection, R2D2Connection};
use job_core::{Database, Fault, JobConnection, JobError, MigrateError, without_secrets};
use std::time::Duration;

const FIRST_PAUSE: Duration = Duration::from_millis(5);
const LONGEST_PAUSE: Duration = Duration::from_secs(3);

/// How often a start is tried on a database that is busy.
const BEGIN_TRIES: u32 = 20;
const BEGIN_PAUSE: Duration = Duration::from_millis(100);

/// A connection of the worker's own that heals itself: after a lost connection it opens another, and what failed for
/// no fault of its own is tried again, with growing pauses, until it succeeds or the worker must stop now.
pub(crate) struct Session<C: R2D2Connection + 'static> {
    name: &'static str,
    manager: Manager<C>,
    statement_timeout: Duration,
    /// Whether a proxy that pools transactions stands in between: see [`Worker::pooler`](crate::Worker::pooler).
    pooler: bool,
    stop: StopHandle,
    /// When to try no more.
    until: Level,
    /// How long to wait for a row that somebody else holds, where that is less than the time limit of a statement.
    patience: Option<Duration>,
    conn: Option<C>,
    /// Counts the connections opened: for what must be done once on each.
    generation: u64,
}

impl<C> Session<C>
where
    C: JobConnection + R2D2Connection + 'static,
{
    pub(crate) fn new(
        name: &'static str,
        manager: Manager<C>,
        options: &Options,
        (stop, until): (StopHandle, Level),
    ) -> Self {
        Session {
            name,
            manager,
            statement_timeout: options.statement_timeout,
            pooler: options.pooler,
            stop,
            until,
            patience: None,
            conn: None,
            generation: 0,
        }
    }

    /// The same that waits for rows that others hold for so long only.
    pub(crate) fn with_patience(self, patience: Duration) -> Self {
        Session {
            patience: Some(patience),
            ..self
        }
    }

    /// Opens the connection if there is none.
    pub(crate) fn connect(&mut self) -> Result<&mut C, JobError> {
        if self.conn.is_none() {
            let mut conn = self.manager.connect().map_err(|error| match error {
                diesel::r2d2::Error::QueryError(error) => JobError::Database(error),
                diesel::r2d2::Error::ConnectionError(error) => {
                    disconnected(&without_secrets(&error.to_string()))
                }
            })?;
            if self.pooler {
                conn.set_prepared_statement_cache_size(CacheSize::Disabled);
            } else {
                <C::Db as Database>::prepare_session(&mut conn, self.statement_timeout)?;
                if let Some(patience) = self.patience {
                    <C::Db as Database>::limit_lock_waits(&mut conn, patience)?;
                }
            }
            self.generation += 1;
            self.conn = Some(conn);
        }
        self.conn.as_mut().ok_or_else(|| disconnected("no connection"))
    }

    /// How many connections have been opened.
    pub(crate) fn generation(&self) -> u64 {
        self.generation
    }

    /// The first call: a database that is not there is an error, so that somebody hears of it; one that is busy is not.
    pub(crate) fn begin<T>(
        &mut self,
        mut work: impl FnMut(&mut C) -> Result<T, WorkerError>,
    ) -> Result<T, WorkerError> {
        let mut tries = 1;
        loop {
            let tried = match self.connect() {
                Ok(_) => self.call(&mut work),
                Err(error) => Err(WorkerError::Unreachable(error.to_string())),
            };
            let busy = match &tried {
                Ok(_) => false,
                Err(WorkerError::Job(JobError::Database(error)))
                | Err(WorkerError::Schema(MigrateError::Database(error))) => {
                    <C::Db as Database>::fault(error) == Fault::Contended
                }
                Err(WorkerError::Unreachable(message)) => {
                    <C::Db as Database>::fault_of_message(message) == Fault::Contended
                }
                Err(_) => false,
            };
            if !busy || tries >= BEGIN_TRIES || self.stop.wait_for(Level::Now, jittered(BEGIN_PAUSE)) {
                return tried;
            }
            tries += 1;
        }
    }

    /// Calls `work` once; behind a pooler in one transaction, since a statement and its preparation, or two statements,
    /// may else meet different sessions of the server.
    fn call<T, E>(&mut self, work: impl FnOnce(&mut C) -> Result<T, E>) -> Result<T, E>
    where
        E: From<JobError> + From<diesel::result::Error>,
    {
        let (pooler, statement_timeout) = (self.pooler, self.statement_timeout);
        let conn = self.connect()?;
        if !pooler {
            return work(conn);
        }
        <C::Db as Database>::write_transaction(conn, |conn| {
            <C::Db as Database>::prepare_transaction(conn, statement_timeout)?;
            work(conn)
        })
    }

    /// Calls `work` once, for what comes again anyhow: an error is the caller's to tell.
    pub(crate) fn once<T>(
        &mut self,
        work: impl FnOnce(&mut C) -> Result<T, JobError>,
    ) -> Result<T, JobError> {
        let tried = self.call(work);
        if let Err(JobError::Database(error)) = &tried
            && <C::Db as Database>::fault(error) != Fault::Contended
        {
            self.conn = None;
        }
        tried
    }

    /// Calls `work` until it succeeds or fails by a fault of its own. `None` where the worker must stop.
    pub(crate) fn run<T>(
        &mut self,
        work: impl FnMut(&mut C) -> Result<T, JobError>,
    ) -> Option<Result<T, JobError>> {
        self.run_while(work, |_| true)
    }

    /// As [`run`](Self::run), but gives the fault back where a row that others hold stands in the way, after a second try.
    pub(crate) fn run_unless_held<T>(
        &mut self,
        work: impl FnMut(&mut C) -> Result<T, JobError>,
    ) -> Option<Result<T, JobError>> {
        // The verbs themselves have tried again already.
        self.run_while(work, |fault| {
            fault != Fault::Contended || !<C::Db as Database>::LIMITS_LOCK_WAITS
        })
    }

    fn run_while<T>(
        &mut self,
        mut work: impl FnMut(&mut C) -> Result<T, JobError>,
        mut may_try_again: impl FnMut(Fault) -> bool,
    ) -> Option<Result<T, JobError>> {
        let mut pause = FIRST_PAUSE;
        loop {
            let tried = self.call(&mut work);
            let error = match tried {
                Ok(value) => return Some(Ok(value)),
                Err(JobError::Database(error)) => error,
                Err(error) => return Some(Err(error)),
            };
            let fault = <C::Db as Database>::fault(&error);
            // After any error but a clean refusal the session may be in an unknown state, and a new one is cheap.
            if fault != Fault::Contended {
                self.conn = None;
            }
            if fault == Fault::Other || !may_try_again(fault) {
                return Some(Err(JobError::Database(error)));
            }
            log::warn!("gatun {}: {error}; trying again", self.name);
            if self.stop.wait_for(self.until, jittered(pause)) {
                return None;
            }
            pause = (pause * 2).min(LONGEST_PAUSE);
        }
    }

    /// As [`run`](Self::run), for what must succeed sooner or later: other faults are tried again too.
    pub(crate) fn insist<T>(&mut self, mut work: impl FnMut(&mut C) -> Result<T, JobError>) -> Option<T> {
        let mut pause = Duration::from_millis(100);
        loop {
            match self.run(&mut work)? {
                Ok(value) => return Some(value),
                Err(error) => log::error!("gatun {}: {error}; trying again", self.name),
            }
            if self.stop.wait_for(self.until, jittered(pause)) {
                return None;
            }
            pause = (pause * 2).min(LONGEST_PAUSE);
        }
    }
}

fn disconnected(message: &str) -> JobError {
    JobError::Database(diesel::result::Error::DatabaseError(
        diesel::result::DatabaseErrorKind::ClosedConnection,
        Box::new(message.to_owned()),
    ))
}
