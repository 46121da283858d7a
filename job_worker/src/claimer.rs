use crate::lanes::{Lane, Lanes};
use crate::options::jittered;
use crate::session::Session;
use crate::stop::Level;
use crate::supply::Supply;
use crate::team::Team;
use diesel::r2d2::R2D2Connection;
use job_core::{
    ClaimRequest, ClaimedJob, JobConnection, JobError, claim, claim_first, claim_in_turn, claim_inside,
    housekeeping, lanes, last_id,
};
use std::cell::Cell;
use std::time::{Duration, Instant};

/// How long to wait after an error that is not healed by another try.
const AFTER_ERROR: Duration = Duration::from_secs(1);

/// Of how many queues the first lane is looked for by a claim.
const FEW_QUEUES: usize = 16;

/// For how long to claim without waiting for a turn that did not come.
const OUT_OF_TURN: Duration = Duration::from_secs(1);

/// Claims jobs on a connection of its own, and gives them on.
pub(crate) struct Claimer<'a, C: R2D2Connection + 'static, X> {
    team: &'a Team<C, X>,
    session: Session<C>,
    supply: Supply<'a>,
    /// When a turn to claim did not come.
    out_of_turn: Cell<Option<Instant>>,
}

/// How one claim went.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Claim {
    /// It gave so many jobs, up to this id.
    Gave(usize, i64),
    /// There was an error, which was logged.
    Failed,
    /// The worker must stop now.
    Stop,
}

impl<'a, C, X> Claimer<'a, C, X>
where
    C: JobConnection + R2D2Connection + 'static,
    X: Send + Sync + 'static,
{
    pub(crate) fn new(team: &'a Team<C, X>, supply: Supply<'a>) -> Self {
        Claimer {
            team,
            session: team.session(supply.side.fetcher(), Level::Stopping),
            supply,
            out_of_turn: Cell::new(None),
        }
    }

    /// Finds the lanes that have jobs. `None` where the worker must stop now.
    pub(crate) fn find_lanes(&mut self, known: &mut Lanes, rescan: bool) -> Option<()> {
        let began = Instant::now();
        let queues = &self.team.options.queues;
        let (found, seen) = self.session.insist(|conn| {
            let found = lanes(conn, queues)?;
            // A queue without jobs, which is the usual one, takes one statement.
            let seen = if found.is_empty() { 0 } else { last_id(conn)? };
            Ok((found, seen))
        })?;
        known.found(found, seen, rescan, began.elapsed());
        Some(())
    }

    /// On news, where all lanes were empty: claims in one round trip what has come, in place of finding its lane first.
    pub(crate) fn claim_news(&mut self, room: usize) -> Claim {
        let team = self.team;
        let queues = &team.options.queues;
        if team.options.pooler || queues.len() > FEW_QUEUES {
            return Claim::Gave(0, 0);
        }
        let (worker, limit) = (team.pulse.worker(), as_limit(room));
        self.claim_by(|conn, kinds, _| claim_first(conn, worker, queues, kinds, limit))
    }

    /// Claims up to `room` jobs of one lane.
    pub(crate) fn claim(&mut self, lane: &Lane, room: usize) -> Claim {
        let team = self.team;
        self.claim_by(|conn, kinds, out_of_turn| {
            let request = ClaimRequest {
                worker: team.pulse.worker(),
                queue: &lane.queue,
                priority: lane.priority,
                after: lane.cursor,
                kinds,
                limit: as_limit(room),
            };
            if team.options.pooler {
                return claim_inside(conn, &request);
            }
            if out_of_turn
                .get()
                .is_none_or(|since| since.elapsed() >= OUT_OF_TURN)
            {
                if let Some(claimed) = claim_in_turn(conn, &request)? {
                    return Ok(claimed);
                }
                out_of_turn.set(Some(Instant::now()));
            }
            claim(conn, &request)
        })
    }

    fn claim_by(
        &mut self,
        claim: impl Fn(&mut C, &[String], &Cell<Option<Instant>>) -> Result<Vec<ClaimedJob>, JobError>,
    ) -> Claim {
        let team = self.team;
        let claiming = team.hands.claiming();
        // A claim whose answer was lost may have been committed; the housekeeper hands such jobs back.
        let mut tries = 0;
        let claimed = self.session.run(|conn| {
            tries += 1;
            claim(conn, &self.supply.kinds, &self.out_of_turn)
        });
        if tries > 1 || !matches!(claimed, Some(Ok(_))) {
            team.hands.raise_doubt();
        }
        let claimed = match claimed {
            Some(Ok(claimed)) => claimed,
            Some(Err(error)) => {
                drop(claiming);
                self.pause_after(&error);
                return Claim::Failed;
            }
            None => return Claim::Stop,
        };
        for job in &claimed {
            team.hands
                .take(job.ticket.job_id, job.ticket.attempts, self.supply.side);
        }
        drop(claiming);
        let number = claimed.len();
        let last_id = claimed.last().map_or(0, |job| job.ticket.job_id);
        if number > 0 {
            team.accord.claimed();
            (self.supply.give)(claimed);
        }
        Claim::Gave(number, last_id)
    }

    /// Whether nothing is in hand that could enqueue or come back, and nothing is due.
    pub(crate) fn is_quiet(&mut self) -> bool {
        let hands = &self.team.hands;
        // The jobs of a claim that is on its way are in nobody's hands yet.
        if hands.count() > 0 || hands.doubts() > 0 || hands.while_nobody_claims().is_none() {
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
                self.pause_after(&error);
                false
            }
            None => false,
        }
    }

    fn pause_after(&self, error: &JobError) {
        log::error!("gatun {}: {error}", self.supply.side.fetcher());
        self.team.stop.wait_for(Level::Stopping, jittered(AFTER_ERROR));
    }
}

fn as_limit(room: usize) -> i64 {
    i64::try_from(room).unwrap_or(i64::MAX)
}
