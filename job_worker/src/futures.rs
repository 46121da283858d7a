//! The async jobs of a worker: futures on a tokio runtime, thousands at once.
//!
//! A job that was claimed becomes a task at once; there is no queue in between. Its outcome goes to the completer as that of
//! a performer does, and the same fence decides whether it counts.

mod host;
mod kind;
mod room;
mod running;
mod setup;

use crate::completer::Done;
use crate::registry::unknown;
use crate::stop::Level;
use crate::team::Team;
use crossbeam_channel::Sender;
use diesel::r2d2::R2D2Connection;
use host::Host;
use job_core::{AsyncConnections, ClaimedJob, JobConnection, RunAsync, Ticket};
use kind::PerformKind;
use room::Room;
use running::{Attempt, Running, attempt};
pub(crate) use setup::Setup;
use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;
use tokio::runtime::{Handle, Runtime};
use tokio::sync::watch;

/// What performs async jobs.
pub(crate) struct Futures<X> {
    kinds: HashMap<&'static str, PerformKind<X>>,
    room: Room,
    running: Running<X>,
    connections: Arc<dyn AsyncConnections>,
    stopping: watch::Sender<bool>,
    handle: Handle,
    /// The worker's own, until it is shut down.
    runtime: Mutex<Option<Runtime>>,
    /// Whether what still runs is left to rescue.
    giving_up: AtomicBool,
    /// Whether the app's runtime ended before the worker.
    ended: AtomicBool,
}

impl<X> Futures<X> {
    fn new(
        kinds: HashMap<&'static str, PerformKind<X>>,
        most: usize,
        connections: Arc<dyn AsyncConnections>,
        stopping: watch::Sender<bool>,
        (handle, runtime): (Handle, Option<Runtime>),
    ) -> Self {
        Futures {
            kinds,
            room: Room::new(most),
            running: Running::new(),
            connections,
            stopping,
            handle,
            runtime: Mutex::new(runtime),
            giving_up: AtomicBool::new(false),
            ended: AtomicBool::new(false),
        }
    }

    pub(crate) fn kinds(&self) -> Vec<String> {
        self.kinds.keys().map(|kind| (*kind).to_owned()).collect()
    }

    /// How many jobs to claim now, while so many are held.
    pub(crate) fn room(&self, held: impl FnOnce() -> usize) -> usize {
        self.room.free(held, Instant::now())
    }

    pub(crate) fn are_none(&self) -> bool {
        self.running.are_none()
    }

    pub(crate) fn tell_stopping(&self) {
        self.stopping.send_replace(true);
    }

    /// Drops what still runs, and ends the worker's own runtime without waiting for it. The jobs are left to rescue.
    pub(crate) fn give_up(&self) {
        self.giving_up.store(true, Ordering::Release);
        self.running.drop_all();
        self.shut_down();
    }

    /// The attempts that are being performed.
    pub(crate) fn running(&self) -> Vec<Attempt> {
        self.running.all()
    }

    /// Drops those of them that the database does not know to be this worker's, and gives how many.
    pub(crate) fn drop_lost(&self, running: Vec<Attempt>, held: &[Ticket]) -> usize {
        self.running.drop_lost(running, held)
    }

    pub(crate) fn is_waiting_for_room(&self) -> bool {
        self.room.is_awaited()
    }

    /// Whether the app's runtime ended before the worker.
    pub(crate) fn have_ended(&self) -> bool {
        self.ended.load(Ordering::Acquire)
    }

    fn shut_down(&self) {
        let runtime = self.runtime.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(runtime) = runtime {
            // To drop it would wait for a transaction that hangs, and is not allowed on a runtime's own thread.
            runtime.shutdown_background();
        }
    }
}

impl<X> Drop for Futures<X> {
    fn drop(&mut self) {
        self.shut_down();
    }
}

/// Starts what was claimed.
pub(crate) fn start<C, X>(team: &Arc<Team<C, X>>, jobs: Vec<ClaimedJob>, done: &Sender<Done>)
where
    C: JobConnection + R2D2Connection + 'static,
    X: Send + Sync + 'static,
{
    let Some(futures) = &team.futures else { return };
    futures.room.claimed(&jobs, Instant::now());
    for job in jobs {
        let attempt = attempt(&job.ticket);
        let context = Arc::clone(&team.context);
        let run = RunAsync::new(context, job.ticket.clone(), Arc::clone(&futures.connections));
        futures.running.enter(attempt, run.clone());
        // Made before the task: a runtime that ends drops it without a start.
        let end = End {
            team: Arc::clone(team),
            done: done.clone(),
            outcome: Some(Done::Unstarted(job.ticket.clone())),
            ticket: job.ticket.clone(),
        };
        let polled = Arc::new(AtomicBool::new(false));
        let task = futures.handle.spawn(perform(job, run, end, Arc::clone(&polled)));
        if task.is_finished()
            && !polled.load(Ordering::Acquire)
            && !futures.ended.swap(true, Ordering::AcqRel)
        {
            // Else it would be claimed and handed back for ever.
            log::error!("gatun: the runtime of the async jobs has ended; the worker stops");
            team.stop.raise_to(Level::Stopping);
        }
        futures.running.started(attempt, task.abort_handle());
    }
}

async fn perform<C, X>(job: ClaimedJob, run: RunAsync<X>, mut end: End<C, X>, polled: Arc<AtomicBool>)
where
    C: JobConnection + R2D2Connection + 'static,
    X: Send + Sync + 'static,
{
    polled.store(true, Ordering::Release);
    if !end.may_start() {
        return;
    }
    end.outcome = None;
    let kind = job.kind.clone();
    let futures = end.team.futures.as_ref();
    let outcome = match futures.and_then(|futures| futures.kinds.get(kind.as_str())) {
        Some(perform) => perform(job, run).await,
        None => unknown(&job),
    };
    end.outcome = Some(Done::Performed(end.ticket.clone(), kind, outcome));
}

/// Tells of the end of an attempt, also where its future was dropped.
struct End<C, X>
where
    C: R2D2Connection + 'static,
{
    team: Arc<Team<C, X>>,
    done: Sender<Done>,
    ticket: Ticket,
    /// What to tell: that it goes back, until it is started; then nothing, until it has ended by itself.
    outcome: Option<Done>,
}

impl<C, X> End<C, X>
where
    C: R2D2Connection + 'static,
{
    /// Whether the job may be started: the worker is not stopping, and it can be sure that the job is still its own.
    fn may_start(&self) -> bool {
        let team = &self.team;
        team.stop.is_running() && self.ticket.worker == team.pulse.worker() && team.pulse.is_trusted()
    }
}

impl<C, X> Drop for End<C, X>
where
    C: R2D2Connection + 'static,
{
    fn drop(&mut self) {
        let Some(futures) = &self.team.futures else { return };
        match self.outcome.take() {
            Some(done) => {
                let _ = self.done.send(done);
            }
            None if futures.giving_up.load(Ordering::Acquire) => {}
            None => {
                let _ = self.done.send(Done::Lost(self.ticket.clone()));
            }
        }
        // Only now: when none is left, all that was done has been handed over.
        futures.running.leave(attempt(&self.ticket));
    }
}
