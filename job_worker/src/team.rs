use crate::connections::{JobPool, Manager};
use crate::futures::Futures;
use crate::hands::Hands;
use crate::heart::Pulse;
use crate::options::Options;
use crate::registry::Registry;
use crate::report::Tally;
use crate::session::Session;
use crate::stop::{Level, StopHandle};
use crate::supply::{Accord, Bell, Side};
use crate::waiting::Waiting;
use crate::window::Window;
use crossbeam_channel::{Receiver, Sender};
use diesel::r2d2::R2D2Connection;
use job_core::JobConnection;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

/// What the threads of one worker share.
pub(crate) struct Team<C: R2D2Connection + 'static, X> {
    pub(crate) options: Options,
    pub(crate) manager: Manager<C>,
    pub(crate) registry: Registry<X>,
    /// What performs async jobs; `None` where the worker has no kinds of them.
    pub(crate) futures: Option<Futures<X>>,
    pub(crate) context: Arc<X>,
    pub(crate) pool: Arc<JobPool<C>>,
    pub(crate) stop: StopHandle,
    /// Set when the completer should end as soon as it has nothing to record.
    pub(crate) flushing: AtomicBool,
    /// Raised when all but the heart have ended.
    pub(crate) end: StopHandle,
    /// The thread that panicked, if one did.
    pub(crate) panicked: Mutex<Option<&'static str>>,
    pub(crate) pulse: Pulse,
    pub(crate) hands: Hands,
    pub(crate) window: Window,
    pub(crate) tally: Tally,
    /// Jobs that no performer has taken up yet.
    pub(crate) waiting: Waiting,
    /// Jobs that were claimed and not performed yet.
    pub(crate) unperformed: AtomicUsize,
    /// Whether notifications come, so that polling can be slow.
    pub(crate) listening: AtomicBool,
    /// End the waits of the fetchers: for the threads, and for the futures.
    pub(crate) bells: [Bell; 2],
    pub(crate) accord: Accord,
    /// Ends the housekeeper's sleep.
    pub(crate) house_calls: (Sender<()>, Receiver<()>),
}

impl<C, X> Team<C, X>
where
    C: JobConnection + R2D2Connection + 'static,
{
    /// Opens a connection of the worker's own, when it is first used. It gives up what fails when the stop has come to that
    /// level.
    pub(crate) fn session(&self, name: &'static str, until: Level) -> Session<C> {
        Session::new(
            name,
            self.manager.clone(),
            &self.options,
            (self.stop.clone(), until),
        )
    }
}

impl<C: R2D2Connection + 'static, X> Team<C, X> {
    /// Wakes the fetcher if it has room for more than half a window, so that its claims stay large.
    pub(crate) fn wake(&self) {
        let unperformed = self.unperformed.load(Ordering::Acquire);
        if unperformed * 2 <= self.window.size() || unperformed < self.options.threads {
            self.bell(Side::Threads).ring();
        }
    }

    pub(crate) fn bell(&self, side: Side) -> &Bell {
        &self.bells[side as usize]
    }

    /// How many jobs to claim now, to be performed as futures.
    pub(crate) fn room_for_futures(&self) -> usize {
        let held = || self.hands.count_of(Side::Futures);
        self.futures.as_ref().map_or(0, |futures| futures.room(held))
    }

    /// Wakes the fetcher of futures if it waits for room, now that there is some.
    pub(crate) fn wake_for_futures(&self) {
        if self.futures.as_ref().is_some_and(Futures::is_waiting_for_room) {
            self.bell(Side::Futures).ring();
        }
    }

    /// How many threads perform jobs; none where all jobs are async.
    pub(crate) fn threads(&self) -> usize {
        if self.registry.is_empty() {
            0
        } else {
            self.options.threads
        }
    }

    /// Whether no future is being performed.
    pub(crate) fn has_no_futures(&self) -> bool {
        self.futures.as_ref().is_none_or(Futures::are_none)
    }

    /// Whether all fetchers of a run until idle have found nothing; see [`Accord::vote`].
    pub(crate) fn are_idle(&self, side: Side, claims: u64) -> bool {
        let is_alone = self.futures.is_none() || self.registry.is_empty();
        self.accord.vote(side, claims, is_alone)
    }

    /// Tells the housekeeper that a job was scheduled.
    pub(crate) fn call_housekeeper(&self) {
        let _ = self.house_calls.0.try_send(());
    }

    /// Tells the fetchers that there may be new jobs.
    pub(crate) fn wake_for_news(&self) {
        for bell in &self.bells {
            bell.ring_for_news();
        }
    }
}
