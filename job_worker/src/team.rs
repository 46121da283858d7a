use crate::connections::{JobPool, Manager};
use crate::hands::Hands;
use crate::heart::Pulse;
use crate::options::Options;
use crate::registry::Registry;
use crate::report::Tally;
use crate::session::Session;
use crate::stop::StopHandle;
use crate::window::Window;
use crossbeam_channel::{Receiver, Sender};
use diesel::r2d2::R2D2Connection;
use job_core::JobConnection;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

/// What the threads of one worker share.
pub(crate) struct Team<C: R2D2Connection + 'static, X> {
    pub(crate) options: Options,
    pub(crate) manager: Manager<C>,
    pub(crate) registry: Registry<X>,
    pub(crate) context: X,
    pub(crate) pool: JobPool<C>,
    pub(crate) kinds: Vec<String>,
    pub(crate) stop: StopHandle,
    /// Set when the completer should end as soon as it has nothing to record.
    pub(crate) flushing: AtomicBool,
    /// Raised when all but the heart have ended.
    pub(crate) end: StopHandle,
    pub(crate) pulse: Pulse,
    pub(crate) hands: Hands,
    pub(crate) window: Window,
    pub(crate) tally: Tally,
    /// Jobs that were claimed and not performed yet.
    pub(crate) unperformed: AtomicUsize,
    /// How many jobs the performers have taken up, ever.
    pub(crate) taken: AtomicUsize,
    /// Whether notifications come, so that polling can be slow.
    pub(crate) listening: AtomicBool,
    /// Whether there may be new jobs since the fetcher last looked.
    pub(crate) news: AtomicBool,
    /// Ends the fetcher's wait.
    pub(crate) wakes: (Sender<()>, Receiver<()>),
    /// Ends the housekeeper's sleep.
    pub(crate) house_calls: (Sender<()>, Receiver<()>),
}

impl<C, X> Team<C, X>
where
    C: JobConnection + R2D2Connection + 'static,
{
    /// Opens a connection of the worker's own, when it is first used.
    pub(crate) fn session(&self, name: &'static str) -> Session<C> {
        Session::new(
            name,
            self.manager.clone(),
            self.options.statement_timeout,
            self.stop.clone(),
        )
    }
}

impl<C: R2D2Connection + 'static, X> Team<C, X> {
    /// Wakes the fetcher if it has room for more than half a window, so that its claims stay large.
    pub(crate) fn wake(&self) {
        let unperformed = self.unperformed.load(Ordering::Acquire);
        if unperformed * 2 <= self.window.size() || unperformed < self.options.threads {
            let _ = self.wakes.0.try_send(());
        }
    }

    /// Tells the housekeeper that a job was scheduled.
    pub(crate) fn call_housekeeper(&self) {
        let _ = self.house_calls.0.try_send(());
    }

    /// Tells the fetcher that there may be new jobs.
    pub(crate) fn wake_for_news(&self) {
        self.news.store(true, Ordering::Release);
        let _ = self.wakes.0.try_send(());
    }
}
