//! From what a worker was set up with to the threads that work.

use super::Worker;
use crate::connections::JobPool;
use crate::hands::Hands;
use crate::heart::Pulse;
use crate::registry::warn_of_other_queues;
use crate::report::{Report, Tally};
use crate::session::Session;
use crate::stop::{Level, StopHandle};
use crate::supply::{Accord, Bell};
use crate::team::Team;
use crate::waiting::Waiting;
use crate::window::Window;
use crate::{WorkerError, crew};
use crossbeam_channel::bounded;
use diesel::r2d2::R2D2Connection;
use job_core::{JobConnection, WorkerRow, schema_version};
use std::sync::atomic::{AtomicBool, AtomicUsize};
use std::sync::{Arc, Mutex};

/// The size of the pool of a worker that has async jobs only: they ask for a connection now and then.
const POOL_FOR_FUTURES: u32 = 4;

impl<C, X> Worker<C, X>
where
    C: JobConnection + R2D2Connection + 'static,
    X: Send + Sync + 'static,
{
    /// The names of all kinds, sorted.
    fn kinds(&self) -> Vec<String> {
        let mut kinds = self.registry.kinds();
        kinds.extend(self.setup.kinds());
        kinds.sort();
        kinds
    }

    fn check(&self) -> Result<(), WorkerError> {
        let options = &self.options;
        if let Some(kind) = self
            .registry
            .duplicate
            .or_else(|| self.setup.duplicate(&self.registry))
        {
            return Err(WorkerError::DuplicateKind(kind));
        }
        self.setup.check()?;
        if self.kinds().is_empty() {
            return Err(WorkerError::NoKinds);
        }
        if options.queues.is_empty() {
            return Err(WorkerError::NoQueues);
        }
        for queue in &options.queues {
            job_core::limits::check_name("queue", queue)?;
        }
        for kind in self.kinds() {
            job_core::limits::check_name("kind", &kind)?;
        }
        if options.threads == 0 && !self.registry.is_empty() {
            return Err(WorkerError::NoThreads);
        }
        if options.rescue_after < options.heartbeat.saturating_mul(3) {
            return Err(WorkerError::RescueTooSoon);
        }
        Ok(())
    }

    pub(super) fn work(mut self, until_idle: bool) -> Result<Report, WorkerError> {
        self.options = self.options.bounded();
        self.check()?;
        let kinds = self.kinds();
        let homes = self.registry.homes.iter().chain(self.setup.homes());
        warn_of_other_queues(homes, &self.options.queues);
        let Worker {
            manager,
            pool,
            context,
            registry,
            setup,
            options,
            stop,
        } = self;
        let pool_size = match options.pool_size {
            0 if registry.is_empty() => POOL_FOR_FUTURES,
            0 => u32::try_from(options.threads).unwrap_or(u32::MAX),
            size => size,
        };
        let pool = Arc::new(match pool {
            Some(pool) => JobPool::App(pool),
            None => JobPool::own(manager.clone(), pool_size, options.pooler),
        });
        // Before it is known to the others: it may fail.
        let futures = setup.start(&pool)?;
        let mut session = Session::<C>::new("start", manager.clone(), &options, (stop.clone(), Level::Now));
        let row = session.begin(|conn| {
            check_schema(conn)?;
            Ok(WorkerRow::register(conn, &options.queues, &kinds)?)
        })?;
        drop(session);
        let team = Arc::new(Team {
            futures,
            pool,
            pulse: Pulse::new(row.id, options.rescue_after),
            window: Window::new(options.threads),
            options,
            manager,
            registry,
            context: Arc::new(context),
            stop,
            flushing: AtomicBool::new(false),
            end: StopHandle::new(),
            panicked: Mutex::new(None),
            hands: Hands::default(),
            tally: Tally::default(),
            waiting: Waiting::default(),
            unperformed: AtomicUsize::new(0),
            listening: AtomicBool::new(false),
            bells: [Bell::new(), Bell::new()],
            accord: Accord::default(),
            house_calls: bounded(1),
        });
        log::info!(
            "gatun: worker {} starts: {} threads, queues {:?}, kinds {kinds:?}",
            row.id,
            team.threads(),
            team.options.queues
        );
        let report = crew::work(&team, row, until_idle)?;
        log::info!("gatun: worker stopped: {report}");
        Ok(report)
    }
}

fn check_schema<C: JobConnection>(conn: &mut C) -> Result<(), WorkerError> {
    <C::Db as job_core::Database>::check_server(conn)?;
    match schema_version(conn)? {
        (None, _) => Err(WorkerError::NotMigrated),
        (Some(database), binary) if database < binary => Err(WorkerError::OldSchema { database, binary }),
        (Some(database), binary) if database > binary => {
            Err(job_core::MigrateError::NewerSchema { database, binary }.into())
        }
        _ => Ok(()),
    }
}
