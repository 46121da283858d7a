use crate::hands::Hands;
use crate::held::{Held, PATIENCE, Tried, is_held};
use crate::report::{Tally, add};
use crate::session::Session;
use crate::stop::Level;
use crate::successes::{Success, Successes};
use crate::team::Team;
use crossbeam_channel::{Receiver, RecvTimeoutError, Sender};
use diesel::r2d2::R2D2Connection;
use job_core::{JobConnection, JsonText, Outcome, Status, Ticket, release_all};
use std::sync::atomic::Ordering;
use std::time::Duration;

/// What a performer hands over.
pub(crate) enum Done {
    /// A job was performed; its kind, for the log.
    Performed(Ticket, String, Outcome),
    /// A job was not started and goes back.
    Unstarted(Ticket),
    /// A job was given up while it was performed, since it is no longer this worker's.
    #[cfg(feature = "tokio")]
    Lost(Ticket),
}

/// At most so many outcomes, and so many bytes of results, are recorded at once.
const MOST_JOBS: usize = 1_000;
const MOST_BYTES: usize = 8 << 20;

/// How often to look whether the worker waits for the last outcomes.
const LOOK: Duration = Duration::from_millis(250);

/// Records outcomes until every performer has ended, or until there are none while the worker ends without some of them. It
/// flushes at once what has gathered while it recorded the last ones. What is held up by somebody's lock, or refused, goes to `held`.
pub(crate) fn record_all<C, X>(team: &Team<C, X>, done: &Receiver<Done>, held: &Sender<Held>)
where
    C: JobConnection + R2D2Connection + 'static,
    X: Send + Sync + 'static,
{
    let (hands, tally) = (&team.hands, &team.tally);
    let mut session = team.session("completer", Level::Now).with_patience(PATIENCE);
    loop {
        let first = match done.recv_timeout(LOOK) {
            Ok(first) => first,
            Err(RecvTimeoutError::Timeout) if !team.flushing.load(Ordering::Acquire) => continue,
            Err(_) => return,
        };
        let (mut completions, mut discards) = (Successes::default(), Successes::default());
        let (mut unstarted, mut others) = (Vec::new(), Vec::new());
        let mut bytes = 0;
        let mut next = Some(first);
        while let Some(done_one) = next {
            match done_one {
                Done::Performed(ticket, _, Outcome::Recorded) => {
                    hands.put_down(ticket.job_id, ticket.attempts);
                    add(&tally.completed, 1);
                }
                Done::Performed(ticket, kind, Outcome::Completed(result)) => {
                    bytes += result.as_ref().map_or(0, |json: &JsonText| json.0.len());
                    completions.push((ticket, result), kind);
                }
                Done::Performed(ticket, kind, Outcome::Discarded) => discards.push(ticket, kind),
                Done::Performed(ticket, kind, outcome) => others.push(Held {
                    ticket,
                    kind,
                    outcome,
                }),
                Done::Unstarted(ticket) => unstarted.push(ticket),
                #[cfg(feature = "tokio")]
                Done::Lost(ticket) => {
                    hands.put_down(ticket.job_id, ticket.attempts);
                    add(&tally.refused, 1);
                }
            }
            let full = completions.jobs.len() + discards.jobs.len() + others.len() + unstarted.len()
                >= MOST_JOBS
                || bytes >= MOST_BYTES;
            next = if full { None } else { done.try_recv().ok() };
        }
        record_successes(&mut session, &completions, held, hands, tally);
        record_successes(&mut session, &discards, held, hands, tally);
        let scheduled = !others.is_empty();
        record_each(&mut session, others, held, hands, tally);
        if scheduled {
            team.call_housekeeper();
        }
        release(&mut session, &unstarted, hands, tally);
        team.wake_for_futures();
    }
}

fn record_successes<C, S>(
    session: &mut Session<C>,
    successes: &Successes<S>,
    held: &Sender<Held>,
    hands: &Hands,
    tally: &Tally,
) where
    C: JobConnection + R2D2Connection + 'static,
    S: Success,
{
    let mut kinds = &*successes.kinds;
    // One statement for all that one worker's id claimed; after it was declared dead, the last ones have the old id.
    for batch in successes
        .jobs
        .chunk_by(|a, b| a.ticket().worker == b.ticket().worker)
    {
        let (batch_kinds, rest) = kinds.split_at(batch.len());
        kinds = rest;
        match session.run_unless_held(|conn| S::record_all(conn, batch[0].ticket().worker, batch)) {
            Some(Ok(recorded)) => {
                add(&tally.completed, recorded.len());
                refuse(batch.len() - recorded.len(), tally);
                for job in batch {
                    hands.put_down(job.ticket().job_id, job.ticket().attempts);
                }
            }
            Some(Err(error)) => {
                let is_held = is_held::<C>(&error);
                if !is_held {
                    // One of them may be the cause: each gets its own try.
                    log::error!("gatun completer: {error}; recording one by one");
                }
                let all = batch.iter().zip(batch_kinds).map(|(job, kind)| Held {
                    ticket: job.ticket().clone(),
                    kind: kind.clone(),
                    outcome: job.outcome(),
                });
                if is_held {
                    // Its receiver ends after the sender.
                    all.for_each(|one| drop(held.send(one)));
                } else {
                    record_each(session, all, held, hands, tally);
                }
            }
            // The worker must stop now; the jobs are left to rescue.
            None => return,
        }
    }
}

/// Records outcomes one by one, and puts aside what is refused; after the first that somebody holds up, all that follow: there
/// may be more of that sort.
fn record_each<C>(
    session: &mut Session<C>,
    outcomes: impl IntoIterator<Item = Held>,
    held: &Sender<Held>,
    hands: &Hands,
    tally: &Tally,
) where
    C: JobConnection + R2D2Connection + 'static,
{
    let mut is_held_up = false;
    for one in outcomes {
        let tried = if is_held_up {
            Tried::Held
        } else {
            one.record(session, hands, tally)
        };
        is_held_up = tried == Tried::Held;
        if matches!(tried, Tried::Held | Tried::Refused) {
            let _ = held.send(one);
        }
    }
}

/// Accounts for an outcome that was recorded, and gave this status; or that others had seen to.
pub(crate) fn account(
    recorded: Option<Status>,
    ticket: &Ticket,
    kind: &str,
    outcome: &Outcome,
    hands: &Hands,
    tally: &Tally,
) {
    hands.put_down(ticket.job_id, ticket.attempts);
    match recorded {
        Some(Status::Completed) => add(&tally.completed, 1),
        Some(Status::Cancelled) => add(&tally.cancelled, 1),
        Some(Status::Failed) => {
            add(&tally.failed, 1);
            log::error!(
                "gatun: job {} ({kind}) failed for good at attempt {}",
                ticket.job_id,
                ticket.charged()
            );
        }
        Some(_) if matches!(outcome, Outcome::Snoozed(_)) => add(&tally.snoozed, 1),
        Some(_) => {
            add(&tally.retried, 1);
            log::warn!(
                "gatun: job {} ({kind}) failed, attempt {} of {}",
                ticket.job_id,
                ticket.charged(),
                ticket.max_attempts
            );
        }
        None => refuse(1, tally),
    }
}

fn release<C>(session: &mut Session<C>, tickets: &[Ticket], hands: &Hands, tally: &Tally)
where
    C: JobConnection + R2D2Connection + 'static,
{
    if tickets.is_empty() {
        return;
    }
    // A release whose answer was lost is not done twice: the claim's number has gone up with it.
    if let Some(released) = session.insist(|conn| release_all(conn, tickets)) {
        add(&tally.released, released);
        for ticket in tickets {
            hands.put_down(ticket.job_id, ticket.attempts);
        }
    }
}

fn refuse(number: usize, tally: &Tally) {
    if number > 0 {
        add(&tally.refused, number);
        log::warn!(
            "gatun: {number} outcomes were refused: their jobs had been rescued, cancelled or recorded before"
        );
    }
}
