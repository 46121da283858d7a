//! For whom a fetcher claims. A worker with jobs of both sorts has two fetchers, so that neither sort waits for the other.

use crate::completer::Done;
use crate::team::Team;
use crate::waiting::Waiting;
use crate::{fetcher, futures};
use crossbeam_channel::{Receiver, Sender, bounded};
use diesel::r2d2::R2D2Connection;
use job_core::{ClaimedJob, JobConnection};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

/// Where a job is performed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Side {
    /// In a thread of its own.
    Threads,
    /// As a future, among many.
    Futures,
}

impl Side {
    /// The name of its fetcher.
    pub(crate) fn fetcher(self) -> &'static str {
        match self {
            Side::Threads => "fetcher",
            Side::Futures => "async-fetcher",
        }
    }
}

/// What a fetcher claims, and what becomes of it.
pub(crate) struct Supply<'a> {
    pub(crate) side: Side,
    pub(crate) kinds: Vec<String>,
    /// Takes what was claimed.
    pub(crate) give: Box<dyn FnMut(Vec<ClaimedJob>) + 'a>,
}

/// Claims jobs for the performers.
pub(crate) fn fetch_for_threads<C, X>(team: &Team<C, X>, done: &Sender<Done>, until_idle: bool)
where
    C: JobConnection + R2D2Connection + 'static,
    X: Send + Sync + 'static,
{
    /// Ends the performers, however the fetcher ends.
    struct CloseAtEnd<'a>(&'a Waiting);
    impl Drop for CloseAtEnd<'_> {
        fn drop(&mut self) {
            self.0.close();
        }
    }
    let _guard = CloseAtEnd(&team.waiting);
    let give = |claimed: Vec<ClaimedJob>| {
        team.unperformed.fetch_add(claimed.len(), Ordering::AcqRel);
        team.waiting.add(claimed, team.window.each());
    };
    let supply = Supply {
        side: Side::Threads,
        kinds: team.registry.kinds(),
        give: Box::new(give),
    };
    fetcher::fetch(team, supply, done, until_idle);
}

/// Claims async jobs, which start at once.
pub(crate) fn fetch_for_futures<C, X>(team: &Arc<Team<C, X>>, done: &Sender<Done>, until_idle: bool)
where
    C: JobConnection + R2D2Connection + 'static,
    X: Send + Sync + 'static,
{
    let supply = Supply {
        side: Side::Futures,
        kinds: team
            .futures
            .as_ref()
            .map_or_else(Vec::new, |futures| futures.kinds()),
        give: Box::new(|claimed| futures::start(team, claimed, done)),
    };
    fetcher::fetch(team, supply, done, until_idle);
}

/// Ends a fetcher's wait.
#[derive(Debug)]
pub(crate) struct Bell {
    /// Whether there may be new jobs since the fetcher last looked.
    news: AtomicBool,
    wakes: (Sender<()>, Receiver<()>),
}

impl Bell {
    pub(crate) fn new() -> Self {
        Bell {
            news: AtomicBool::new(false),
            wakes: bounded(1),
        }
    }

    /// Tells that there is room.
    pub(crate) fn ring(&self) {
        let _ = self.wakes.0.try_send(());
    }

    /// Tells that there may be new jobs.
    pub(crate) fn ring_for_news(&self) {
        self.news.store(true, Ordering::Release);
        self.ring();
    }

    /// Waits for room, and keeps news for the time when there is some.
    pub(crate) fn wait_for_room(&self, timeout: Duration) {
        let _ = self.wakes.1.recv_timeout(timeout);
    }

    /// Waits for room or news, and gives whether there may be new jobs.
    pub(crate) fn wait(&self, timeout: Duration) -> bool {
        if self.news.swap(false, Ordering::AcqRel) {
            return true;
        }
        self.wait_for_room(timeout);
        self.news.swap(false, Ordering::AcqRel)
    }
}

/// Whether all fetchers of a run until idle have found nothing, with no claim in between.
#[derive(Debug, Default)]
pub(crate) struct Accord {
    claims: AtomicU64,
    /// What the number of claims was when the fetcher of each side began to look in vain, and one more; 0 for never.
    votes: [AtomicU64; 2],
}

impl Accord {
    /// A claim gave jobs, and they are in hand.
    pub(crate) fn claimed(&self) {
        self.claims.fetch_add(1, Ordering::AcqRel);
    }

    pub(crate) fn claims(&self) -> u64 {
        self.claims.load(Ordering::Acquire)
    }

    /// A fetcher that began to look when nothing was in hand, and when there had been so many claims, found nothing. Gives
    /// whether all of them have since the last claim.
    pub(crate) fn vote(&self, side: Side, claims: u64, is_alone: bool) -> bool {
        let (mine, others) = match side {
            Side::Threads => (&self.votes[0], &self.votes[1]),
            Side::Futures => (&self.votes[1], &self.votes[0]),
        };
        mine.store(claims + 1, Ordering::SeqCst);
        self.claims() == claims && (is_alone || others.load(Ordering::SeqCst) == claims + 1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_fetchers_agree_only_about_the_same_time() {
        let accord = Accord::default();
        assert!(!accord.vote(Side::Threads, 0, false));
        accord.claimed();
        assert!(
            !accord.vote(Side::Futures, 1, false),
            "the other one has not looked since"
        );
        assert!(!accord.vote(Side::Threads, 0, false), "a claim came in between");
        assert!(!accord.vote(Side::Futures, 1, false));
        assert!(accord.vote(Side::Threads, 1, false));
        assert!(accord.vote(Side::Futures, 1, false));
    }

    #[test]
    fn one_fetcher_agrees_with_itself() {
        let accord = Accord::default();
        assert!(accord.vote(Side::Threads, 0, true));
        accord.claimed();
        assert!(!accord.vote(Side::Threads, 0, true));
    }
}
