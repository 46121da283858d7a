mod timer;

use self::timer::Timer;
use crate::options::jittered;
use crate::report::add;
use crate::session::Session;
use crate::silence::Silence;
use crate::stop::Level;
use crate::team::Team;
use diesel::r2d2::R2D2Connection;
use job_core::housekeeping::Chores;
use job_core::{JobConnection, JobError, Status, housekeeping, release_all};
use std::time::{Duration, Instant};

/// How long to sleep at most: another process may have scheduled a job that is due sooner than the next one known.
const PROMOTE_EVERY: Duration = Duration::from_secs(1);
const RECLAIM_EVERY: Duration = Duration::from_secs(15);
const PRUNE_EVERY: Duration = Duration::from_secs(60);

/// The sizes of one statement or transaction.
const PROMOTE_BATCH: i64 = 1_000;
const RESCUE_BATCH: i64 = 100;
const PRUNE_BATCH: i64 = 1_000;

/// How many batches the pruner takes before it lets the other tasks have their turn.
const PRUNE_TURN: usize = 10;

/// How many batches in a row the pruner looks at in vain before it leaves the rest for another time.
const PRUNE_PATIENCE: u32 = 3;

/// Keeps house until a stop.
pub(crate) fn keep_house<C, X>(team: &Team<C, X>)
where
    C: JobConnection + R2D2Connection + 'static,
    X: Send + Sync + 'static,
{
    let mut house = Housekeeper {
        team,
        session: team.session("housekeeper", Level::Stopping),
        silence: Silence::default(),
    };
    let mut rescue = Timer::new(team.options.heartbeat);
    let mut reclaim = Timer::new(RECLAIM_EVERY);
    let mut prune = Timer::new(PRUNE_EVERY);
    let mut lost = Timer::new(team.options.heartbeat);
    while team.stop.is_running() {
        let mut pause = jittered(PROMOTE_EVERY);
        if team.futures.is_some() {
            // To notice lost jobs in time.
            pause = pause.min(team.options.heartbeat);
        }
        let chores = if rescue.is_up() {
            house.look_at_all()
        } else {
            house.look()
        };
        if let Some(due) = house.promote(chores.next_due) {
            pause = pause.min(due);
        }
        house.rescue(&chores);
        if reclaim.is_up() || team.hands.doubts() > 0 {
            house.hand_back_unanswered_claims();
        }
        if lost.is_up() {
            house.drop_lost_futures();
        }
        if prune.is_up() && house.prune() {
            prune.hurry();
            continue;
        }
        // Ends early when a retry was scheduled here, and at a stop.
        let _ = team.house_calls.1.recv_timeout(pause);
    }
    // What runs during the grace time may be cancelled as before.
    while !team.has_no_futures()
        && !team
            .stop
            .wait_for(Level::Now, team.options.heartbeat.min(PROMOTE_EVERY))
    {
        if lost.is_up() {
            house.drop_lost_futures();
        }
    }
}

struct Housekeeper<'a, C: R2D2Connection + 'static, X> {
    team: &'a Team<C, X>,
    session: Session<C>,
    silence: Silence,
}

impl<C, X> Housekeeper<'_, C, X>
where
    C: JobConnection + R2D2Connection + 'static,
    X: Send + Sync + 'static,
{
    /// Calls a verb once; an error is logged, and the next time may go better: a task that is in trouble must not keep the
    /// others from their turn. `None` ends the present task.
    fn call<T>(&mut self, task: &str, work: impl FnOnce(&mut C) -> Result<T, JobError>) -> Option<T> {
        self.session
            .once(work)
            .inspect_err(|error| log::warn!("gatun housekeeper, {task}: {error}"))
            .ok()
    }

    /// Looks at what is due only.
    fn look(&mut self) -> Chores {
        Chores {
            next_due: self.call("promote", housekeeping::next_due).flatten(),
            silent: false,
            orphans: false,
        }
    }

    /// Looks at all that may be in one statement. Where that fails, each task looks for itself: one that is in trouble must
    /// not keep the others from their turn.
    fn look_at_all(&mut self) -> Chores {
        let age = self.team.options.rescue_after;
        let Some(chores) = self.call("look", |conn| housekeeping::chores(conn, age)) else {
            return Chores {
                silent: true,
                orphans: true,
                ..self.look()
            };
        };
        if !chores.silent {
            self.silence.clear();
        }
        chores
    }

    /// Promotes what is due, and gives how long it is until the next one is.
    fn promote(&mut self, mut due: Option<Duration>) -> Option<Duration> {
        while self.team.stop.is_running() {
            if due != Some(Duration::ZERO) {
                return due;
            }
            let moved = self.call("promote", |conn| housekeeping::promote(conn, PROMOTE_BATCH))?;
            if moved == 0 {
                // Another worker has the rows.
                return None;
            }
            self.team.wake_for_news();
            due = self.call("promote", housekeeping::next_due)?;
        }
        None
    }

    /// Declares workers dead that have been silent for long by the database's clock, *and* for a beat of our own time; then
    /// takes back what dead workers held.
    fn rescue(&mut self, chores: &Chores) {
        let mut orphans = chores.orphans;
        if chores.silent {
            orphans |= self.declare_dead();
        }
        while orphans {
            let Some(rescued) = self.call("rescue", |conn| housekeeping::rescue(conn, RESCUE_BATCH)) else {
                return;
            };
            add(&self.team.tally.rescued, rescued.len());
            if !rescued.is_empty() {
                log::warn!("gatun: took back {} jobs of dead workers", rescued.len());
            }
            orphans = rescued.len() as i64 >= RESCUE_BATCH;
        }
    }

    /// Gives whether it declared any dead.
    fn declare_dead(&mut self) -> bool {
        let age = self.team.options.rescue_after;
        let Some(silent) = self.call("rescue", |conn| housekeeping::silent_workers(conn, age)) else {
            return false;
        };
        let mut any = false;
        let own = self.team.pulse.worker();
        let patience = self.team.options.heartbeat;
        for worker in self.silence.lasting(&silent, Instant::now(), patience) {
            if worker != own && self.team.pulse.is_trusted() {
                let dead = self.call("rescue", |conn| housekeeping::declare_dead(conn, worker, age));
                if dead == Some(true) {
                    log::warn!("gatun: worker {worker} has not beaten for {age:?} and is declared dead");
                    any = true;
                }
            }
        }
        any
    }

    /// Drops the futures whose jobs are no longer this worker's: they were cancelled or rescued, or the worker was declared
    /// dead.
    fn drop_lost_futures(&mut self) {
        let Some(futures) = &self.team.futures else { return };
        // First these, then the worker's id: a job that was claimed since is not among them.
        let running = futures.running();
        if running.is_empty() {
            return;
        }
        let worker = self.team.pulse.worker();
        let Some(held) = self.call("lost jobs", |conn| housekeeping::held_by(conn, worker)) else {
            return;
        };
        let dropped = futures.drop_lost(running, &held);
        if dropped > 0 {
            log::warn!(
                "gatun: gave up {dropped} jobs that were cancelled or rescued while they were performed"
            );
        }
    }

    /// Hands back jobs that this worker holds in the database only: the answer to their claim was lost.
    fn hand_back_unanswered_claims(&mut self) {
        let team = self.team;
        let worker = team.pulse.worker();
        let Some(claiming) = team.hands.while_nobody_claims() else {
            team.hands.raise_doubt();
            return;
        };
        let doubts = team.hands.doubts();
        let held = self.call("unanswered claims", |conn| housekeeping::held_by(conn, worker));
        let lost = held.map(|held| team.hands.not_held(held));
        drop(claiming);
        match lost.and_then(|lost| self.call("unanswered claims", |conn| release_all(conn, &lost))) {
            Some(0) => team.hands.settle_doubts(doubts),
            Some(released) => {
                log::warn!("gatun: handed back {released} jobs whose claim was not answered");
                add(&team.tally.released, released);
                team.hands.settle_doubts(doubts);
                team.wake_for_news();
            }
            None => team.hands.raise_doubt(),
        }
    }

    /// Prunes for a turn, and gives whether there may be more. Jobs end nearly in the order of their ids, so what is old
    /// stands in front; jobs with low ids that ended late keep those behind them waiting, until they are old themselves.
    fn prune(&mut self) -> bool {
        let Some(age) = self.team.options.prune_after else {
            return false;
        };
        let mut more = false;
        for status in [Status::Completed, Status::Failed, Status::Cancelled] {
            let (mut after, mut in_vain) = (0, 0);
            for batch in 0.. {
                if batch == PRUNE_TURN || !self.team.stop.is_running() {
                    more = true;
                    break;
                }
                let Some(pruned) = self.call("prune", |conn| {
                    housekeeping::prune(conn, status, age, after, PRUNE_BATCH)
                }) else {
                    return false;
                };
                in_vain = if pruned.removed > 0 { 0 } else { in_vain + 1 };
                match pruned.next {
                    Some(next) if in_vain < PRUNE_PATIENCE => after = next,
                    _ => break,
                }
            }
        }
        more
    }
}
