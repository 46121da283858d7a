use crate::completer::Done;
use crate::options::jittered;
use crate::performer::hand_back;
use crate::session::Session;
use crate::stop::Level;
use crate::supply::{Bell, Side, Supply};
use crate::team::Team;
use crossbeam_channel::{Receiver, Sender};
use diesel::r2d2::R2D2Connection;
use job_core::{
    ClaimRequest, ClaimedJob, JobConnection, claim, claim_in_turn, claim_inside, housekeeping, lanes, last_id,
};
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

/// How often a cursor goes back to the start while there is enough to do: ids become visible out of order, and jobs come
/// back with old ones. While there is nothing else to do, each look starts there.
const RESCAN: Duration = Duration::from_secs(1);

/// A look that walks over much, such as a heap of jobs of an unknown kind, or of dead rows, may take a twentieth of the time
/// at most, but it is not put off for longer than that: it may have been the database that was away.
const LOOK_SHARE: u32 = 20;
const LOOK_AT_LAST: Duration = Duration::from_secs(30);

/// How often to look where nothing tells that there are new jobs, and where notifications do.
const POLL: Duration = Duration::from_millis(200);
const POLL_LISTENING: Duration = Duration::from_secs(1);

/// Senders of notifications send one in 10 ms at most, so a job may come this much later than the notification.
const AFTER_NEWS: Duration = Duration::from_millis(15);

/// How often to look which lanes have jobs, while there are jobs in one and others came back short.
const LOOK_FOR_LANES: Duration = Duration::from_millis(50);

/// For how long to claim without waiting for a turn that did not come.
const OUT_OF_TURN: Duration = Duration::from_secs(1);

/// How long to wait where claiming is not allowed, or where the completer lags behind.
const HOLD: Duration = Duration::from_millis(50);

/// How long to wait, in a run until idle, for jobs that are still in hand.
const BUSY_ELSEWHERE: Duration = Duration::from_millis(5);

/// When no performer takes up a job for so long, those that wait go back: other workers may have threads for them.
const STALLED: Duration = Duration::from_secs(1);

/// A queue and a priority, with the id up to which its jobs were seen.
struct Lane {
    queue: String,
    priority: i32,
    cursor: i64,
    /// Whether it gave fewer jobs than it might, and is left alone until lanes are looked for again.
    short: bool,
}

/// What one look at the lanes gave.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Look {
    /// There may be more.
    Claimed,
    /// There was nothing from the cursors on.
    Nothing,
}

/// Claims jobs and hands them on, until a stop, or until there is nothing to do if `until_idle`. In `waiting` stand those
/// that nobody has taken up yet.
pub(crate) fn fetch<C, X>(
    team: &Team<C, X>,
    supply: Supply<'_>,
    waiting: &Receiver<ClaimedJob>,
    done: &Sender<Done>,
    until_idle: bool,
) where
    C: JobConnection + R2D2Connection + 'static,
    X: Send + Sync + 'static,
{
    let mut fetcher = Fetcher {
        team,
        session: team.session("fetcher", Level::Stopping),
        bell: team.bell(supply.side),
        supply,
        lanes: Vec::new(),
        rescanned: None,
        rescan_cost: Duration::ZERO,
        found: Instant::now(),
        finding_cost: Duration::ZERO,
        idle: true,
        out_of_turn: None,
        seen: 0,
        last_taken: (0, Instant::now()),
    };
    let mut follow_up = false;
    // How many claims there had been when a look began that may be the last one.
    let mut quiet = None;
    while team.stop.is_running() {
        if fetcher.is_stalled(waiting) {
            team.window.slow_down();
            hand_back(team, waiting, done);
        }
        let room = fetcher.room();
        if room == 0 {
            fetcher.bell.wait_for_room(HOLD);
            continue;
        }
        let Some(look) = fetcher.look(room) else {
            break;
        };
        if look == Look::Claimed {
            quiet = None;
            continue;
        }
        if until_idle {
            fetcher.rescanned = None;
            // A look from the start that began when nothing was in hand or due found nothing: there is nothing to do.
            if quiet.is_some_and(|claims| team.are_idle(fetcher.supply.side, claims)) {
                team.stop.raise_to(Level::Stopping);
                break;
            }
            // Once more in vain: another fetcher has not looked yet.
            let again = quiet.is_some();
            let claims = team.accord.claims();
            quiet = fetcher.is_quiet().then_some(claims);
            if again || quiet.is_none() {
                fetcher.bell.wait(BUSY_ELSEWHERE);
            }
            continue;
        }
        let pause = if follow_up {
            AFTER_NEWS
        } else if waiting.is_empty() {
            fetcher.poll_pause()
        } else {
            fetcher.poll_pause().min(HOLD)
        };
        follow_up = fetcher.bell.wait(pause);
    }
    // The threads may be busy with jobs that ignore the stop; what waits behind them has not lost anything by it.
    hand_back(team, waiting, done);
}

struct Fetcher<'a, C: R2D2Connection + 'static, X> {
    team: &'a Team<C, X>,
    session: Session<C>,
    supply: Supply<'a>,
    bell: &'a Bell,
    lanes: Vec<Lane>,
    /// When the cursors last went back to the start; `None` to do so at the next look.
    rescanned: Option<Instant>,
    /// How long a look from the start took that found nothing.
    rescan_cost: Duration,
    /// When lanes were last looked for, and how long that took.
    found: Instant,
    finding_cost: Duration,
    /// Whether the last look found nothing.
    idle: bool,
    /// When a turn to claim did not come.
    out_of_turn: Option<Instant>,
    /// The highest id that there was before the present look.
    seen: i64,
    /// How many jobs the performers had taken up, and since when it has been so many.
    last_taken: (usize, Instant),
}

impl<C, X> Fetcher<'_, C, X>
where
    C: JobConnection + R2D2Connection + 'static,
    X: Send + Sync + 'static,
{
    /// Whether jobs have waited for long in which no performer took one up.
    fn is_stalled(&mut self, waiting: &Receiver<ClaimedJob>) -> bool {
        let taken = self.team.taken.load(Ordering::Relaxed);
        if taken != self.last_taken.0 || waiting.is_empty() {
            self.last_taken = (taken, Instant::now());
        }
        self.last_taken.1.elapsed() >= STALLED
    }

    /// How many jobs to claim now; 0 where the threads have enough, or where this worker must not claim.
    fn room(&self) -> usize {
        let team = self.team;
        if self.supply.side == Side::Futures {
            return if team.pulse.is_trusted() {
                team.room_for_futures()
            } else {
                0
            };
        }
        let window = team.window.size();
        let unperformed = team.unperformed.load(Ordering::Acquire);
        let lags = team.hands.count_of(Side::Threads) >= 4 * window;
        if !team.pulse.is_trusted()
            || lags
            || (unperformed * 2 > window && unperformed >= team.options.threads)
        {
            return 0;
        }
        window.saturating_sub(unperformed)
    }

    /// Looks at each lane in turn until the room is full. `None` where the worker must stop now.
    fn look(&mut self, mut room: usize) -> Option<Look> {
        let began = Instant::now();
        let rescan = self.rescan_is_due();
        if rescan || self.idle || self.lanes_are_due() {
            self.find_lanes(rescan)?;
        }
        let (mut look, mut passed_over) = (Look::Nothing, false);
        for at in 0..self.lanes.len() {
            if room == 0 || !self.team.stop.is_running() {
                break;
            }
            if self.lanes[at].short {
                passed_over = true;
                continue;
            }
            let claimed = self.claim(at, room)?;
            if claimed < room {
                // The lane was looked through up to its end: what stands in it so far is not for this worker.
                self.lanes[at].cursor = self.lanes[at].cursor.max(self.seen);
                self.lanes[at].short = true;
            }
            if claimed > 0 {
                look = Look::Claimed;
            }
            room -= claimed.min(room);
        }
        // As idle it looks at all lanes the next time, and at once if it has passed one over.
        self.idle = look == Look::Nothing;
        if passed_over {
            look = Look::Claimed;
        }
        if rescan {
            self.rescanned = Some(Instant::now());
            if self.idle {
                self.rescan_cost = began.elapsed();
            }
        }
        Some(look)
    }

    fn rescan_is_due(&self) -> bool {
        let pause = (self.rescan_cost * LOOK_SHARE).min(LOOK_AT_LAST);
        let pause = if self.idle { pause } else { pause.max(RESCAN) };
        self.rescanned.is_none_or(|at| at.elapsed() >= pause)
    }

    /// One statement finds which of the lanes have jobs, where a claim finds it for one of them: with many lanes, those that
    /// are empty are not to be asked one by one.
    fn lanes_are_due(&self) -> bool {
        let pause = (self.finding_cost * LOOK_SHARE).clamp(LOOK_FOR_LANES, LOOK_AT_LAST);
        self.found.elapsed() >= pause && self.lanes.iter().any(|lane| lane.short)
    }

    /// Finds the lanes that have jobs. Their cursors stay, or go back to the start.
    fn find_lanes(&mut self, rescan: bool) -> Option<()> {
        let began = Instant::now();
        let queues = &self.team.options.queues;
        let (found, seen) = self.session.insist(|conn| {
            let found = lanes(conn, queues)?;
            // A queue without jobs, which is the usual one, takes one statement.
            let seen = if found.is_empty() { 0 } else { last_id(conn)? };
            Ok((found, seen))
        })?;
        let old = std::mem::take(&mut self.lanes);
        self.seen = seen;
        self.lanes = found
            .into_iter()
            .map(|(queue, priority)| {
                let known = old
                    .iter()
                    .find(|lane| lane.queue == queue && lane.priority == priority);
                Lane {
                    cursor: known.filter(|_| !rescan).map_or(0, |lane| lane.cursor),
                    queue,
                    priority,
                    short: false,
                }
            })
            .collect();
        (self.found, self.finding_cost) = (Instant::now(), began.elapsed());
        Some(())
    }

    /// Claims up to `room` jobs of one lane and hands them on; gives how many.
    fn claim(&mut self, at: usize, room: usize) -> Option<usize> {
        let team = self.team;
        let lane = &mut self.lanes[at];
        let request = ClaimRequest {
            worker: team.pulse.worker(),
            queue: &lane.queue,
            priority: lane.priority,
            after: lane.cursor,
            kinds: &self.supply.kinds,
            limit: i64::try_from(room).unwrap_or(i64::MAX),
        };
        let out_of_turn = &mut self.out_of_turn;
        let claiming = team.hands.claiming();
        // A claim whose answer was lost may have been committed; the housekeeper hands such jobs back.
        let mut tries = 0;
        let claimed = self.session.run(|conn| {
            tries += 1;
            if team.options.pooler {
                return claim_inside(conn, &request);
            }
            if out_of_turn.is_none_or(|since| since.elapsed() >= OUT_OF_TURN) {
                if let Some(claimed) = claim_in_turn(conn, &request)? {
                    return Ok(claimed);
                }
                *out_of_turn = Some(Instant::now());
            }
            claim(conn, &request)
        });
        if tries > 1 || !matches!(claimed, Some(Ok(_))) {
            team.hands.raise_doubt();
        }
        let claimed = claimed?;
        let claimed = match claimed {
            Ok(claimed) => claimed,
            Err(error) => {
                drop(claiming);
                log::error!("gatun fetcher: {error}");
                team.stop.wait_for(Level::Stopping, jittered(POLL_LISTENING));
                // As if there were more: the cursor must not pass over what was not looked at.
                return Some(room);
            }
        };
        for job in &claimed {
            team.hands
                .take(job.ticket.job_id, job.ticket.attempts, self.supply.side);
            lane.cursor = lane.cursor.max(job.ticket.job_id);
        }
        drop(claiming);
        let number = claimed.len();
        if number > 0 {
            team.accord.claimed();
            (self.supply.give)(claimed);
        }
        Some(number)
    }

    /// Whether nothing is in hand that could enqueue or come back, and nothing is due.
    fn is_quiet(&mut self) -> bool {
        if self.team.hands.count() > 0 || self.team.hands.doubts() > 0 {
            return false;
        }
        // What somebody else promotes just now is not ours to promote, but still due.
        let due = self.session.run(|conn| {
            let moved = housekeeping::promote(conn, 100)?;
            Ok(moved > 0 || housekeeping::next_due(conn)? == Some(Duration::ZERO))
        });
        match due {
            Some(Ok(due)) => !due,
            Some(Err(error)) => {
                log::error!("gatun fetcher: {error}");
                self.team.stop.wait_for(Level::Stopping, jittered(POLL_LISTENING));
                false
            }
            None => false,
        }
    }

    fn poll_pause(&self) -> Duration {
        let default = if self.team.listening.load(Ordering::Relaxed) {
            POLL_LISTENING
        } else {
            POLL
        };
        jittered(self.team.options.poll.unwrap_or(default))
    }
}
