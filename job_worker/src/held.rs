//! Outcomes that the others must not wait for: those that somebody's lock holds up, such as an app's transaction that has
//! cancelled a job which is being performed, and does something slow before it commits; and those that the database refuses.

use crate::completer::account;
use crate::hands::Hands;
use crate::report::Tally;
use crate::session::Session;
use crate::stop::Level;
use crate::team::Team;
use crossbeam_channel::{Receiver, RecvTimeoutError};
use diesel::r2d2::R2D2Connection;
use job_core::{Database, Fault, JobConnection, JobError, Outcome, Ticket};
use std::collections::VecDeque;
use std::time::Duration;

/// How long a statement may wait for a lock. A verb is tried some times before its outcome is put aside, after about a second.
pub(crate) const PATIENCE: Duration = Duration::from_millis(250);

/// How often an outcome is refused before its content is suspected.
const REFUSALS: u32 = 4;

/// How long to wait before all that is held is tried again.
const PAUSE: Duration = Duration::from_millis(250);

/// How often to look whether the worker must stop now.
const LOOK: Duration = Duration::from_secs(1);

/// An outcome that is to be recorded by itself.
#[derive(Debug)]
pub(crate) struct Held {
    pub(crate) ticket: Ticket,
    pub(crate) kind: String,
    pub(crate) outcome: Outcome,
}

/// What became of one try.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Tried {
    /// It is recorded, or others had seen to the job.
    Recorded,
    /// By somebody's lock.
    Held,
    /// By the database, for now or for good.
    Refused,
    /// The worker must stop now; the job is left to rescue.
    Stop,
}

impl Held {
    /// Records it, unless somebody holds it up or the database refuses it.
    pub(crate) fn record<C>(&self, session: &mut Session<C>, hands: &Hands, tally: &Tally) -> Tried
    where
        C: JobConnection + R2D2Connection + 'static,
    {
        let (ticket, kind, outcome) = (&self.ticket, &self.kind, &self.outcome);
        let tried = session.run_unless_held(|conn| match ticket.record(conn, outcome) {
            Err(JobError::Lost(_)) => Ok(None),
            tried => tried.map(Some),
        });
        match tried {
            None => return Tried::Stop,
            Some(Ok(recorded)) => account(recorded, ticket, kind, outcome, hands, tally),
            Some(Err(error)) if is_held::<C>(&error) => return Tried::Held,
            Some(Err(error)) => {
                log::warn!("gatun completer: {error}");
                return Tried::Refused;
            }
        }
        Tried::Recorded
    }

    /// Records one outcome, however often it takes: a database that is read-only for a while, or full, takes it later. One that
    /// the database never takes, while it takes others, is recorded as a failure with that reason.
    fn insist<C>(&self, session: &mut Session<C>, hands: &Hands, tally: &Tally)
    where
        C: JobConnection + R2D2Connection + 'static,
    {
        let (ticket, kind, outcome) = (&self.ticket, &self.kind, &self.outcome);
        let mut refusals = 0;
        let insisted = session.insist(|conn| {
            let tried = if refusals < REFUSALS {
                ticket.record(conn, outcome)
            } else {
                ticket.record_or_fail(conn, outcome)
            };
            match tried {
                // Others have seen to the job.
                Err(JobError::Lost(_)) => Ok(None),
                Err(error) => {
                    // A database that is away, or a lock, says nothing of the outcome.
                    if matches!(&error, JobError::Database(error) if C::Db::fault(error) == Fault::Other) {
                        refusals += 1;
                    }
                    Err(error)
                }
                Ok(status) => Ok(Some(status)),
            }
        });
        let Some(recorded) = insisted else { return };
        account(recorded, ticket, kind, outcome, hands, tally);
    }
}

pub(crate) fn is_held<C: JobConnection>(error: &JobError) -> bool {
    matches!(error, JobError::Database(error) if C::Db::fault(error) == Fault::Contended)
}

/// Records what the completer put aside, one by one and again and again, until the completer has ended and nothing is left.
pub(crate) fn record_held<C, X>(team: &Team<C, X>, held: &Receiver<Held>)
where
    C: JobConnection + R2D2Connection + 'static,
    X: Send + Sync + 'static,
{
    let mut session = team.session("held-completer", Level::Now).with_patience(PATIENCE);
    let mut waiting = VecDeque::new();
    // How many in a row were tried in vain.
    let mut in_vain = 0;
    loop {
        if waiting.is_empty() {
            match held.recv_timeout(LOOK) {
                Ok(one) => waiting.push_back(one),
                Err(RecvTimeoutError::Timeout) if team.stop.level() < Level::Now => continue,
                Err(_) => return,
            }
        }
        waiting.extend(held.try_iter());
        let Some(one) = waiting.pop_front() else { continue };
        match one.record(&mut session, &team.hands, &team.tally) {
            Tried::Recorded => in_vain = 0,
            Tried::Held => {
                waiting.push_back(one);
                in_vain += 1;
            }
            Tried::Refused => {
                one.insist(&mut session, &team.hands, &team.tally);
                in_vain = 0;
            }
            Tried::Stop => return,
        }
        if in_vain >= waiting.len() && !waiting.is_empty() {
            in_vain = 0;
            if team.stop.wait_for(Level::Now, PAUSE) {
                return;
            }
        }
        team.wake_for_futures();
    }
}
