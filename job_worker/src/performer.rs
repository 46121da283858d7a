use crate::completer::Done;
use crate::team::Team;
use crossbeam_channel::Sender;
use diesel::r2d2::R2D2Connection;
use job_core::{ClaimedJob, JobConnection, Outcome};
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

/// How often a performer that must not start looks whether it may.
const LOOK_AGAIN: Duration = Duration::from_millis(100);

/// Performs jobs until there will be no more. After a stop was asked for, it starts none, and hands them back.
pub(crate) fn perform_all<C, X>(team: &Team<C, X>, done: &Sender<Done>)
where
    C: JobConnection + R2D2Connection + 'static,
    X: Send + Sync + 'static,
{
    while let Some(job) = team.waiting.take_up() {
        let ticket = job.ticket.clone();
        let result = if may_start(team, &job) {
            let began = Instant::now();
            let outcome = team
                .registry
                .perform(&job, &team.context, &*team.pool, team.stop.stopping());
            let result = match &outcome {
                Outcome::Completed(Some(json)) => json.0.len(),
                _ => 0,
            };
            team.window.learn(began.elapsed(), job.args.0.len() + result);
            Done::Performed(ticket, job.kind, outcome)
        } else {
            Done::Unstarted(ticket)
        };
        team.unperformed.fetch_sub(1, Ordering::AcqRel);
        // The completer ends before the performers only when the worker must stop now.
        let _ = done.send(result);
        team.wake();
    }
}

/// Hands back the jobs that no performer has taken yet.
pub(crate) fn hand_back<C, X>(team: &Team<C, X>, done: &Sender<Done>)
where
    C: R2D2Connection + 'static,
{
    for job in team.waiting.take_back() {
        team.unperformed.fetch_sub(1, Ordering::AcqRel);
        let _ = done.send(Done::Unstarted(job.ticket));
    }
}

/// Whether the job may be started: the worker is not stopping, and it can be sure that the job is still its own.
fn may_start<C, X>(team: &Team<C, X>, job: &ClaimedJob) -> bool
where
    C: JobConnection + R2D2Connection + 'static,
{
    loop {
        if !team.stop.is_running() || job.ticket.worker != team.pulse.worker() {
            return false;
        }
        if team.pulse.is_trusted() {
            return true;
        }
        team.stop.wait_for(crate::stop::Level::Stopping, LOOK_AGAIN);
    }
}
