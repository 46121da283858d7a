use crate::completer::Done;
use crate::follow_up::FollowUp;
use crate::options::jittered;
use crate::performer::hand_back;
use crate::session::Session;
use crate::stop::Level;
use crate::team::Team;
use crossbeam_channel::{Receiver, Sender};
use diesel::r2d2::R2D2Connection;
use job_core::{
    ClaimRequest, ClaimedJob, JobConnection, JobError, claim, claim_first, claim_inside, housekeeping, lanes,
    last_id,
};
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

/// How often a cursor goes back to the start while there is enough to do: ids become visible out of order, and jobs come
/// back with old ones. While there is nothing else to do, each look starts there.
const RESCAN: Duration = Duration::from_secs(1);

/// A look from the start that walks over much, such as a heap of jobs of an unknown kind, may take this share of the time
/// at most, but it is not put off for longer than that: it may have been the database that was away.
const RESCAN_SHARE: u32 = 20;
const RESCAN_AT_LAST: Duration = Duration::from_secs(30);

/// How often to look where nothing tells that there are new jobs, and where notifications do.
const POLL: Duration = Duration::from_millis(200);
const POLL_LISTENING: Duration = Duration::from_secs(2);

/// How long to wait after an error that is not healed by another try.
const AFTER_ERROR: Duration = Duration::from_secs(1);

/// Of how many queues the first lane is looked for by a claim.
const FEW_QUEUES: usize = 16;

/// How long a lane that came back short is left alone while others have jobs.
const SHORT: Duration = Duration::from_millis(50);

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
    /// When it last gave fewer jobs than it might.
    short: Option<Instant>,
}

impl Lane {
    fn is_short(&self) -> bool {
        self.short.is_some_and(|at| at.elapsed() < SHORT)
    }
}

/// What one claim gave.
struct Claimed {
    number: usize,
    last_id: i64,
}

/// What one look at the lanes gave.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Look {
    /// There may be more.
    Claimed,
    /// There was nothing from the cursors on.
    Nothing,
}

/// Claims jobs and hands them to the performers, until a stop, or until there is nothing to do if `until_idle`.
pub(crate) fn fetch<C, X>(
    team: &Team<C, X>,
    (jobs, waiting): (Sender<ClaimedJob>, Receiver<ClaimedJob>),
    done: &Sender<Done>,
    until_idle: bool,
) where
    C: JobConnection + R2D2Connection + 'static,
    X: Send + Sync + 'static,
{
    let mut fetcher = Fetcher {
        team,
        session: team.session("fetcher", Level::Stopping),
        lanes: Vec::new(),
        rescanned: None,
        rescan_cost: Duration::ZERO,
        idle: true,
        seen: 0,
        last_taken: (0, Instant::now()),
    };
    let mut news = false;
    let mut follow_up = FollowUp::default();
    let mut quiet = false;
    while team.stop.is_running() {
        if fetcher.is_stalled(&waiting) {
            team.window.slow_down();
            hand_back(team, &waiting, done);
        }
        let room = fetcher.room();
        if room == 0 {
            // News are kept for the time when there is room.
            let _ = team.wakes.1.recv_timeout(HOLD);
            continue;
        }
        let began = Instant::now();
        let look = match fetcher.claim_news(std::mem::take(&mut news), room, &jobs) {
            Some(0) => fetcher.look(room, &jobs),
            claimed => claimed.map(|_| Look::Claimed),
        };
        let Some(look) = look else {
            break;
        };
        if look == Look::Claimed {
            quiet = false;
            continue;
        }
        if until_idle {
            fetcher.rescanned = None;
            // A look from the start that began when nothing was in hand or due found nothing: there is nothing to do.
            if quiet {
                team.stop.raise_to(Level::Stopping);
                break;
            }
            quiet = fetcher.is_quiet();
            if !quiet {
                fetcher.wait(BUSY_ELSEWHERE);
            }
            continue;
        }
        follow_up.looked(began);
        let mut pause = fetcher.poll_pause();
        if !waiting.is_empty() {
            pause = pause.min(HOLD);
        }
        if let Some(next) = follow_up.pause(Instant::now()) {
            pause = pause.min(next);
        }
        news = fetcher.wait(pause);
        if news {
            follow_up.news(Instant::now());
        }
    }
    // The threads may be busy with jobs that ignore the stop; what waits behind them has not lost anything by it.
    hand_back(team, &waiting, done);
}

struct Fetcher<'a, C: R2D2Connection + 'static, X> {
    team: &'a Team<C, X>,
    session: Session<C>,
    lanes: Vec<Lane>,
    /// When the cursors last went back to the start; `None` to do so at the next look.
    rescanned: Option<Instant>,
    /// How long a look from the start took that found nothing.
    rescan_cost: Duration,
    /// Whether the last look found nothing.
    idle: bool,
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
        let window = team.window.size();
        let unperformed = team.unperformed.load(Ordering::Acquire);
        let lags = team.hands.count() >= 4 * window;
        if !team.pulse.is_trusted()
            || lags
            || (unperformed * 2 > window && unperformed >= team.options.threads)
        {
            return 0;
        }
        window.saturating_sub(unperformed)
    }

    /// Looks at each lane in turn until the room is full. `None` where the worker must stop now.
    fn look(&mut self, mut room: usize, jobs: &Sender<ClaimedJob>) -> Option<Look> {
        let began = Instant::now();
        let rescan = self.rescan_is_due();
        if rescan || self.idle {
            self.find_lanes(rescan)?;
        }
        let (mut look, mut passed_over) = (Look::Nothing, false);
        for at in 0..self.lanes.len() {
            if room == 0 || !self.team.stop.is_running() {
                break;
            }
            if self.lanes[at].is_short() {
                passed_over = true;
                continue;
            }
            let claimed = self.claim(at, room, jobs)?;
            if claimed < room {
                // The lane was looked through up to its end: what stands in it so far is not for this worker.
                self.lanes[at].cursor = self.lanes[at].cursor.max(self.seen);
                self.lanes[at].short = Some(Instant::now());
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
        let pause = (self.rescan_cost * RESCAN_SHARE).min(RESCAN_AT_LAST);
        let pause = if self.idle { pause } else { pause.max(RESCAN) };
        self.rescanned.is_none_or(|at| at.elapsed() >= pause)
    }

    /// Finds the lanes that have jobs. Their cursors stay, or go back to the start.
    fn find_lanes(&mut self, rescan: bool) -> Option<()> {
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
                    short: None,
                }
            })
            .collect();
        Some(())
    }

    /// On news, where all lanes were empty: claims in one round trip what has come, in place of finding its lane first.
    fn claim_news(&mut self, news: bool, room: usize, jobs: &Sender<ClaimedJob>) -> Option<usize> {
        let team = self.team;
        let queues = &team.options.queues;
        if !news || team.options.pooler || !self.idle || !self.lanes.is_empty() || queues.len() > FEW_QUEUES {
            return Some(0);
        }
        let (worker, limit) = (team.pulse.worker(), i64::try_from(room).unwrap_or(i64::MAX));
        let claimed = self.claim_by(jobs, |conn| claim_first(conn, worker, queues, &team.kinds, limit))?;
        Some(claimed.map_or(0, |claimed| claimed.number))
    }

    /// Claims up to `room` jobs of one lane and hands them on; gives how many.
    fn claim(&mut self, at: usize, room: usize, jobs: &Sender<ClaimedJob>) -> Option<usize> {
        let team = self.team;
        let (queue, priority) = (self.lanes[at].queue.clone(), self.lanes[at].priority);
        let request = ClaimRequest {
            worker: team.pulse.worker(),
            queue: &queue,
            priority,
            after: self.lanes[at].cursor,
            kinds: &team.kinds,
            limit: i64::try_from(room).unwrap_or(i64::MAX),
        };
        let claimed = self.claim_by(jobs, |conn| {
            if team.options.pooler {
                claim_inside(conn, &request)
            } else {
                claim(conn, &request)
            }
        })?;
        // After an error as if there were more: the cursor must not pass over what was not looked at.
        let Some(claimed) = claimed else { return Some(room) };
        let lane = &mut self.lanes[at];
        lane.cursor = lane.cursor.max(claimed.last_id);
        Some(claimed.number)
    }

    /// Claims jobs and hands them on. `None` where the worker must stop now, `Some(None)` after an error.
    fn claim_by(
        &mut self,
        jobs: &Sender<ClaimedJob>,
        mut claim: impl FnMut(&mut C) -> Result<Vec<ClaimedJob>, JobError>,
    ) -> Option<Option<Claimed>> {
        let team = self.team;
        let claiming = team.hands.claiming();
        // A claim whose answer was lost may have been committed; the housekeeper hands such jobs back.
        let mut tries = 0;
        let claimed = self.session.run(|conn| {
            tries += 1;
            claim(conn)
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
                team.stop.wait_for(Level::Stopping, jittered(AFTER_ERROR));
                return Some(None);
            }
        };
        for job in &claimed {
            team.hands.take(job.ticket.job_id, job.ticket.attempts);
        }
        drop(claiming);
        team.unperformed.fetch_add(claimed.len(), Ordering::AcqRel);
        let number = claimed.len();
        let last_id = claimed.last().map_or(0, |job| job.ticket.job_id);
        for job in claimed {
            // The performers live as long as the sender.
            let _ = jobs.send(job);
        }
        Some(Some(Claimed { number, last_id }))
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
                self.team.stop.wait_for(Level::Stopping, jittered(AFTER_ERROR));
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

    /// Waits for room or news, and gives whether there may be new jobs.
    fn wait(&self, timeout: Duration) -> bool {
        let news = || self.team.news.swap(false, Ordering::AcqRel);
        if news() {
            return true;
        }
        let _ = self.team.wakes.1.recv_timeout(timeout);
        news()
    }
}
