use crate::outcome::Outcome;
use crate::{JobConnection, JobError, Ticket, claim};
use anyhow::Context as _;
use job_db::Database;
use serde::Serialize;
use std::any::{Any, type_name};
use std::sync::atomic::{AtomicBool, Ordering};

/// Gives a job a connection when it asks for one. The worker implements it over its pool; it knows the connection's type,
/// the job does not, hence `Any`.
pub trait Connections: Send + Sync {
    /// Gets a connection and calls `work` with it, once.
    ///
    /// # Errors
    /// Where no connection can be had.
    fn with(&self, work: &mut dyn FnMut(&mut dyn Any)) -> anyhow::Result<()>;

    /// The name of the connections' type, if it is known, for messages.
    fn type_name(&self) -> Option<&'static str> {
        None
    }
}

/// One attempt to perform a job, as the job sees it.
pub struct Run<'a, X> {
    context: &'a X,
    ticket: &'a Ticket,
    connections: &'a dyn Connections,
    stopping: &'a AtomicBool,
    recorded: AtomicBool,
    discards: bool,
}

impl<'a, X> Run<'a, X> {
    /// For workers, and for tests of a job.
    pub fn new(
        context: &'a X,
        ticket: &'a Ticket,
        connections: &'a dyn Connections,
        stopping: &'a AtomicBool,
    ) -> Self {
        Run {
            context,
            ticket,
            connections,
            stopping,
            recorded: AtomicBool::new(false),
            discards: false,
        }
    }

    /// The same of a job that is to be deleted when it has completed: see
    /// [`Perform::DISCARD_COMPLETED`](crate::Perform::DISCARD_COMPLETED).
    pub fn discarding(self, discards: bool) -> Self {
        Run { discards, ..self }
    }

    /// What the worker shares with its jobs.
    pub fn context(&self) -> &'a X {
        self.context
    }

    /// The job's id. It stays the same in every attempt, so it serves as an idempotency key for other services.
    pub fn job_id(&self) -> i64 {
        self.ticket.job_id
    }

    /// The number of this attempt among those that are charged, from 1.
    pub fn attempt(&self) -> i32 {
        self.ticket.charged()
    }

    /// Whether a failure of this attempt ends the job.
    pub fn is_last_attempt(&self) -> bool {
        self.ticket.charged() >= self.ticket.max_attempts
    }

    /// Whether the worker is stopping: a long job should come to an end, or [`snooze`](crate::snooze()).
    pub fn is_stopping(&self) -> bool {
        self.stopping.load(Ordering::Relaxed)
    }

    /// Whether this attempt has recorded its completion by [`transaction`](Self::transaction).
    pub fn is_recorded(&self) -> bool {
        self.recorded.load(Ordering::Acquire)
    }

    /// Calls `work` with a connection of the worker's pool. Say the connection's type in the closure:
    /// `run.connection(|conn: &mut PgConnection| …)`.
    ///
    /// # Errors
    /// What `work` gives; where the pool has no connection in time; where the worker's connections are of another type,
    /// which ends the job as failed for good, since no other attempt could succeed.
    pub fn connection<C, T>(&self, work: impl FnOnce(&mut C) -> anyhow::Result<T>) -> anyhow::Result<T>
    where
        C: Any,
    {
        let mut work = Some(work);
        let mut result = None;
        self.connections.with(&mut |conn| {
            result = work
                .take()
                .map(|work| with_type(conn, self.ticket.job_id, self.connections.type_name(), work));
        })?;
        result.context("the worker gave no connection")?
    }

    /// Runs `work` in a transaction that also completes the job, with what `work` gives as its result: the job's own
    /// writes and its completion are committed together or not at all, so their effect is exactly once. Give the value on
    /// as the job's output.
    ///
    /// ```
    /// # #[cfg(feature = "sqlite")]
    /// # mod example {
    /// # use diesel::prelude::*;
    /// # use job_core::{Perform, Run};
    /// # #[derive(serde::Serialize, serde::Deserialize)]
    /// # struct Pay { account: i64, cents: i64 }
    /// # impl Perform for Pay {
    /// #     const KIND: &'static str = "pay"; type Context = (); type Output = i64;
    /// fn perform(&self, run: &Run<'_, ()>) -> anyhow::Result<i64> {
    ///     run.transaction(|conn: &mut SqliteConnection| {
    ///         diesel::sql_query("UPDATE accounts SET cents = cents + ? WHERE id = ?")
    ///             .bind::<diesel::sql_types::BigInt, _>(self.cents)
    ///             .bind::<diesel::sql_types::BigInt, _>(self.account)
    ///             .execute(conn)?;
    ///         Ok(self.cents)
    ///     })
    /// }
    /// # }
    /// # }
    /// ```
    ///
    /// Hand on the errors of your statements: MySQL and MariaDB end the whole transaction at a deadlock, and what `work` does
    /// after it stands for itself. So does DDL there, and a COMMIT of your own anywhere; the job is not completed then, and is
    /// tried again.
    ///
    /// # Errors
    /// What `work` gives; [`JobError::Lost`] where the job was rescued or cancelled in the meantime; what the database says.
    /// In each case nothing that `work` wrote stays, unless only the answer to the COMMIT was lost: then the job's record
    /// stands with it, and the failure that the worker tries to record is refused.
    pub fn transaction<C, T>(&self, work: impl FnOnce(&mut C) -> anyhow::Result<T>) -> anyhow::Result<T>
    where
        C: JobConnection + 'static,
        T: Serialize,
    {
        let value = self.connection(|conn: &mut C| complete_with(conn, self.ticket, self.discards, work))?;
        self.recorded.store(true, Ordering::Release);
        Ok(value)
    }

    /// Whether the job is still this attempt's: `false` once it was cancelled or rescued. A long job may ask now and then.
    ///
    /// # Errors
    /// What the database says.
    pub fn is_mine<C: JobConnection>(&self, conn: &mut C) -> Result<bool, JobError> {
        use crate::backend::JobBackend as _;
        Ok(C::Db::is_processing(conn, self.ticket)?)
    }
}

/// Calls `work` with a connection of the type that it names. `has` is the name of the type that the worker has.
pub(crate) fn with_type<C: Any, T>(
    conn: &mut dyn Any,
    job_id: i64,
    has: Option<&str>,
    work: impl FnOnce(&mut C) -> anyhow::Result<T>,
) -> anyhow::Result<T> {
    match conn.downcast_mut::<C>() {
        Some(conn) => work(conn),
        None => {
            let asked = type_name::<C>();
            let error = match has {
                Some(has) => format!(
                    "the worker's connections are {has}, and the closure asks for {asked}: write `|conn: &mut {}| …`",
                    short(has)
                ),
                None => format!(
                    "the worker's connections are not of the type {asked}: name the type that the worker was made with"
                ),
            };
            // A fault of the program, which quotes no arguments and which no other attempt heals.
            log::error!("gatun: job {job_id}: {error}");
            Err(crate::fail_for_good(error))
        }
    }
}

/// A type's name as one writes it where it is imported.
fn short(name: &str) -> &str {
    if name.contains('<') {
        return name;
    }
    name.rsplit("::").next().unwrap_or(name)
}

/// Runs `work` and records its value as the job's result, or discards the job, in one transaction.
pub(crate) fn complete_with<C, T>(
    conn: &mut C,
    ticket: &Ticket,
    discards: bool,
    work: impl FnOnce(&mut C) -> anyhow::Result<T>,
) -> anyhow::Result<T>
where
    C: JobConnection + 'static,
    T: Serialize,
{
    C::Db::write_transaction(conn, |conn| {
        // In a savepoint, whose end shows that the transaction is still the one that was begun: a deadlock or a
        // COMMIT whose error `work` swallowed would have ended it, and the completion would stand alone.
        let value = conn.transaction(work)?;
        match claim::succeeded::<C>(&value, discards) {
            Outcome::FailedForGood(reason) => Err(crate::fail_for_good(reason)),
            outcome => {
                ticket.record_inside(conn, &outcome)?;
                Ok(value)
            }
        }
    })
}

impl<X> std::fmt::Debug for Run<'_, X> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Run")
            .field("ticket", &self.ticket)
            .finish_non_exhaustive()
    }
}
