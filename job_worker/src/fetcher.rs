use crate::claimer::{Claim, Claimer};
use crate::completer::Done;
use crate::follow_up::FollowUp;
use crate::lanes::Lanes;
use crate::options::jittered;
use crate::performer::hand_back;
use crate::stop::Level;
use crate::supply::{Bell, Side, Supply};
use crate::team::Team;
use crate::waiting::LATE;
use crossbeam_channel::Sender;
use diesel::r2d2::R2D2Connection;
use job_core::JobConnection;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

/// How often to look where nothing tells that there are new jobs, and where notifications do.
const POLL: Duration = Duration::from_millis(200);
const POLL_LISTENING: Duration = Duration::from_secs(2);

/// How long to wait where claiming is not allowed, or where the completer lags behind.
const HOLD: Duration = Duration::from_millis(50);

/// How long to wait, in a run until idle, for jobs that are still in hand.
const BUSY_ELSEWHERE: Duration = Duration::from_millis(5);

/// When no performer takes up a job for so long, those that wait go back: other workers may have threads for them.
const STALLED: Duration = Duration::from_secs(1);

/// What one look at the lanes gave.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Look {
    /// There may be more.
    Claimed,
    /// There was nothing from the cursors on.
    Nothing,
}

/// Claims jobs and hands them on, until a stop, or until there is nothing to do if `until_idle`.
pub(crate) fn fetch<C, X>(team: &Team<C, X>, supply: Supply<'_>, done: &Sender<Done>, until_idle: bool)
where
    C: JobConnection + R2D2Connection + 'static,
    X: Send + Sync + 'static,
{
    let mut fetcher = Fetcher {
        team,
        side: supply.side,
        bell: team.bell(supply.side),
        claimer: Claimer::new(team, supply),
        lanes: Lanes::default(),
        last_taken: (0, Instant::now()),
    };
    let mut news = false;
    let mut follow_up = FollowUp::default();
    // How many claims there had been when a look began that may be the last one.
    let mut quiet = None;
    while team.stop.is_running() {
        if fetcher.is_stalled() {
            team.window.slow_down();
            hand_back(team, done);
        }
        let room = fetcher.room();
        if room == 0 {
            fetcher.bell.wait_for_room(fetcher.hold());
            continue;
        }
        let began = Instant::now();
        let Some(look) = fetcher.look(std::mem::take(&mut news), room) else {
            break;
        };
        if look == Look::Claimed {
            quiet = None;
            continue;
        }
        if until_idle {
            fetcher.lanes.rescan();
            // A look from the start that began when nothing was in hand or due found nothing: there is nothing to do.
            if quiet.is_some_and(|claims| team.are_idle(fetcher.side, claims)) {
                team.stop.raise_to(Level::Stopping);
                break;
            }
            // Once more in vain: another fetcher has not looked yet.
            let again = quiet.is_some();
            let claims = team.accord.claims();
            quiet = fetcher.claimer.is_quiet().then_some(claims);
            if again || quiet.is_none() {
                fetcher.bell.wait(BUSY_ELSEWHERE.min(fetcher.hold()));
            }
            continue;
        }
        follow_up.looked(began);
        let mut pause = fetcher.poll_pause();
        if fetcher.has_waiting() {
            pause = pause.min(fetcher.hold());
        }
        if let Some(next) = follow_up.pause(Instant::now()) {
            pause = pause.min(next);
        }
        news = fetcher.bell.wait(pause);
        if news {
            follow_up.news(Instant::now());
        }
    }
    // The threads may be busy with jobs that ignore the stop; what waits behind them has not lost anything by it.
    hand_back(team, done);
}

struct Fetcher<'a, C: R2D2Connection + 'static, X> {
    team: &'a Team<C, X>,
    side: Side,
    bell: &'a Bell,
    claimer: Claimer<'a, C, X>,
    lanes: Lanes,
    /// How many jobs the performers had taken up, and since when it has been so many.
    last_taken: (usize, Instant),
}

impl<C, X> Fetcher<'_, C, X>
where
    C: JobConnection + R2D2Connection + 'static,
    X: Send + Sync + 'static,
{
    /// Whether jobs have waited for long in which no performer took one up.
    fn is_stalled(&mut self) -> bool {
        let taken = self.team.waiting.taken_up();
        if taken != self.last_taken.0 || !self.has_waiting() {
            self.last_taken = (taken, Instant::now());
        }
        self.last_taken.1.elapsed() >= STALLED
    }

    fn has_waiting(&self) -> bool {
        self.side == Side::Threads && !self.team.waiting.is_empty()
    }

    /// How long to wait until the next look at the jobs that wait.
    fn hold(&self) -> Duration {
        if self.side == Side::Threads && self.team.waiting.call_late() {
            LATE
        } else {
            HOLD
        }
    }

    /// How many jobs to claim now; 0 where the threads have enough, or where this worker must not claim.
    fn room(&self) -> usize {
        let team = self.team;
        if !team.pulse.is_trusted() {
            return 0;
        }
        if self.side == Side::Futures {
            return team.room_for_futures();
        }
        let window = team.window.size();
        let unperformed = team.unperformed.load(Ordering::Acquire);
        let lags = team.hands.count_of(Side::Threads) >= 4 * window;
        if lags || (unperformed * 2 > window && unperformed >= team.options.threads) {
            return 0;
        }
        window.saturating_sub(unperformed)
    }

    /// Claims what has just come, or looks at each lane in turn until the room is full. `None` where the worker must stop now.
    fn look(&mut self, news: bool, room: usize) -> Option<Look> {
        if news && self.lanes.are_empty() {
            match self.claimer.claim_news(room) {
                Claim::Gave(0, _) => {}
                Claim::Gave(..) | Claim::Failed => return Some(Look::Claimed),
                Claim::Stop => return None,
            }
        }
        let began = Instant::now();
        let rescan = self.lanes.rescan_is_due();
        if rescan || self.lanes.are_due() {
            self.claimer.find_lanes(&mut self.lanes, rescan)?;
        }
        let (mut room, mut look, mut passed_over) = (room, Look::Nothing, false);
        for place in 0..self.lanes.len() {
            if room == 0 || !self.team.stop.is_running() {
                break;
            }
            if self.lanes.at(place).short {
                passed_over = true;
                continue;
            }
            match self.claimer.claim(self.lanes.at(place), room) {
                Claim::Gave(number, last_id) => {
                    self.lanes.advance(place, last_id);
                    if number < room {
                        self.lanes.came_short(place);
                    }
                    if number > 0 {
                        look = Look::Claimed;
                    }
                    room -= number.min(room);
                }
                Claim::Failed => {
                    // As if there were more: the cursor must not pass over what was not looked at.
                    look = Look::Claimed;
                    break;
                }
                Claim::Stop => return None,
            }
        }
        self.lanes.looked(rescan, began, look == Look::Nothing);
        // As idle it looks at all lanes the next time, and at once if it has passed one over.
        Some(if passed_over { Look::Claimed } else { look })
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
