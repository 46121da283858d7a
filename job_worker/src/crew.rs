//! The threads of a worker: how they start, and in which order they end.

use crate::futures::Futures;
use crate::heart::beat;
use crate::report::{Report, add};
use crate::session::Session;
use crate::stop::Level;
use crate::supply::{Bell, Side};
use crate::team::Team;
use crate::{WorkerError, completer, held, housekeeper, listener, performer, supply};
use crossbeam_channel::unbounded;
use diesel::r2d2::R2D2Connection;
use job_core::{JobConnection, WorkerRow, housekeeping, release_all};
use std::io;
use std::sync::atomic::Ordering;
use std::sync::{Arc, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// How long the outcomes that are known may take to be recorded when the worker must stop now.
const LAST_FLUSH: Duration = Duration::from_secs(3);

/// How often to look whether threads have ended, during a stop.
const LOOK: Duration = Duration::from_millis(5);

struct Crew {
    heart: JoinHandle<()>,
    completers: Vec<JoinHandle<()>>,
    performers: Vec<JoinHandle<()>>,
    fetchers: Vec<JoinHandle<()>>,
    others: Vec<JoinHandle<()>>,
}

/// Starts the threads, waits for the stop, and ends them in the right order: performers and fetcher, completer, the others,
/// and the heart at last.
pub(crate) fn work<C, X>(
    team: &Arc<Team<C, X>>,
    row: WorkerRow,
    until_idle: bool,
) -> Result<Report, WorkerError>
where
    C: JobConnection + R2D2Connection + 'static,
    X: Send + Sync + 'static,
{
    let crew = start(team, row, until_idle).inspect_err(|_| {
        team.stop.raise_to(Level::Now);
        team.end.raise_to(Level::Now);
        // The fetcher, which does it otherwise, may not have been started.
        team.waiting.close();
    })?;
    while !team.stop.wait_for(Level::Stopping, Duration::from_secs(3600)) {}
    let deadline = Instant::now() + team.options.grace;
    team.bells.iter().for_each(Bell::ring);
    if let Some(futures) = &team.futures {
        futures.tell_stopping();
    }
    team.call_housekeeper();

    let performed = || {
        // A fetcher may still start what it has just claimed; that ends at once.
        let started = team.futures.is_none() || have_ended(&crew.fetchers);
        have_ended(&crew.performers) && started && team.has_no_futures()
    };
    let in_time = await_end(team, performed, deadline, Duration::ZERO);
    if let Some(futures) = &team.futures {
        futures.give_up();
    }
    let last = Instant::now() + LAST_FLUSH;
    // The fetcher hands back what no thread has taken up; the completer must not end before it.
    await_end(team, || have_ended(&crew.fetchers), last, LAST_FLUSH);
    team.flushing.store(true, Ordering::Release);
    let flushed = if in_time { deadline.max(last) } else { last };
    await_end(team, || have_ended(&crew.completers), flushed, LAST_FLUSH);
    // A future that does not let go of its thread cannot be dropped, and ends with the process.
    await_end(team, || team.has_no_futures(), last, LAST_FLUSH);
    let abandoned = team.hands.count();
    if abandoned > 0 {
        log::error!(
            "gatun: {abandoned} jobs did not end, or were not recorded, in time; they are left to rescue"
        );
    }
    team.stop.raise_to(Level::Now);
    // A thread whose database does not answer ends with the process: the stop does not wait for it.
    let deadline = Instant::now() + LAST_FLUSH;
    await_end(team, || have_ended(&crew.others), deadline, LAST_FLUSH);
    team.end.raise_to(Level::Now);
    await_end(
        team,
        || crew.heart.is_finished(),
        Instant::now() + LAST_FLUSH,
        LAST_FLUSH,
    );
    match *team.panicked.lock().unwrap_or_else(PoisonError::into_inner) {
        Some(thread) => Err(WorkerError::Panicked(thread)),
        None if team.futures.as_ref().is_some_and(Futures::have_ended) => {
            Err(WorkerError::Runtime("has ended"))
        }
        None => Ok(team.tally.report(abandoned)),
    }
}

fn start<C, X>(team: &Arc<Team<C, X>>, row: WorkerRow, until_idle: bool) -> io::Result<Crew>
where
    C: JobConnection + R2D2Connection + 'static,
    X: Send + Sync + 'static,
{
    let (done_in, done_out) = unbounded();
    let heart = spawn(team, "heart", move |team| {
        // Its session heals until the very end, not until the stop.
        let mut session = Session::new(
            "heart",
            team.manager.clone(),
            &team.options,
            (team.end.clone(), Level::Now),
        );
        beat(&mut session, &team.pulse, &row, team.options.heartbeat, &team.end);
        leave(&mut session, team);
    })?;
    let (held_in, held_out) = unbounded();
    let completers = vec![
        spawn(team, "completer", move |team| {
            completer::record_all(team, &done_out, &held_in);
        })?,
        // It ends after the other, and opens its connection when it is needed.
        spawn(team, "held-completer", move |team| {
            held::record_held(team, &held_out);
        })?,
    ];
    let performers = (0..team.threads())
        .map(|_| {
            let done = done_in.clone();
            spawn(team, "performer", move |team| performer::perform_all(team, &done))
        })
        .collect::<io::Result<Vec<_>>>()?;
    let mut others = vec![spawn(team, "housekeeper", housekeeper::keep_house)?];
    if team.options.listen && !team.options.pooler && !until_idle {
        others.push(spawn(team, "listener", listener::listen)?);
    }
    let mut fetchers = Vec::new();
    if team.futures.is_some() {
        let (shared, done) = (Arc::clone(team), done_in.clone());
        fetchers.push(spawn(team, Side::Futures.fetcher(), move |_| {
            supply::fetch_for_futures(&shared, &done, until_idle);
        })?);
    }
    if team.threads() > 0 {
        // When it ends, the performers do, and then the completer.
        fetchers.push(spawn(team, Side::Threads.fetcher(), move |team| {
            supply::fetch_for_threads(team, &done_in, until_idle);
        })?);
    }
    Ok(Crew {
        heart,
        completers,
        performers,
        fetchers,
        others,
    })
}

/// Starts a thread of the team. One that panics, which is a fault of ours, stops the worker with an error, for somebody to
/// restart it.
fn spawn<C, X>(
    team: &Arc<Team<C, X>>,
    name: &'static str,
    work: impl FnOnce(&Team<C, X>) + Send + 'static,
) -> io::Result<JoinHandle<()>>
where
    C: JobConnection + R2D2Connection + 'static,
    X: Send + Sync + 'static,
{
    struct StopOnPanic<F: Fn()>(F);
    impl<F: Fn()> Drop for StopOnPanic<F> {
        fn drop(&mut self) {
            if std::thread::panicking() {
                (self.0)();
            }
        }
    }
    let team = Arc::clone(team);
    std::thread::Builder::new()
        .name(format!("gatun-{name}"))
        .spawn(move || {
            let _guard = StopOnPanic(|| {
                *team.panicked.lock().unwrap_or_else(PoisonError::into_inner) = Some(name);
                team.stop.raise_to(Level::Stopping);
            });
            work(&team);
        })
}

/// The last thing that a worker does: it hands back what it holds in the database only, and removes its row. The row of one
/// that leaves jobs behind stays until it is declared dead, since they may still be running.
fn leave<C, X>(session: &mut Session<C>, team: &Team<C, X>)
where
    C: JobConnection + R2D2Connection + 'static,
    X: Send + Sync + 'static,
{
    let worker = team.pulse.worker();
    let left = session.run(|conn| {
        // The look walks over all that is being performed, by whomever.
        let lost = match team.hands.doubts() {
            0 => Vec::new(),
            _ => team.hands.not_held(housekeeping::held_by(conn, worker)?),
        };
        let released = release_all(conn, &lost)?;
        if team.hands.count() == 0 {
            WorkerRow::unregister(conn, worker)?;
        }
        Ok(released)
    });
    match left {
        Some(Ok(released)) => add(&team.tally.released, released),
        Some(Err(error)) => log::warn!("gatun: the worker's row could not be removed: {error}"),
        None => {}
    }
}

fn have_ended(threads: &[JoinHandle<()>]) -> bool {
    threads.iter().all(JoinHandle::is_finished)
}

/// Waits until something has ended, at most until the deadline, and at most so long once the worker must stop now; gives
/// whether it has ended.
fn await_end<C: R2D2Connection + 'static, X>(
    team: &Team<C, X>,
    has_ended: impl Fn() -> bool,
    mut deadline: Instant,
    after_now: Duration,
) -> bool {
    let mut now = false;
    while !has_ended() {
        if !now && team.stop.level() == Level::Now {
            now = true;
            deadline = deadline.min(Instant::now() + after_now);
        }
        if Instant::now() >= deadline {
            return false;
        }
        std::thread::sleep(LOOK);
    }
    true
}
