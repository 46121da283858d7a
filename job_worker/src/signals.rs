use crate::stop::{Level, StopHandle};
use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::flag::register_conditional_default;
use signal_hook::iterator::{Handle, Signals as Stream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::thread::JoinHandle;

/// Turns SIGTERM and SIGINT into a stop, until it is ended.
pub(crate) struct Signals {
    handle: Handle,
    /// Gives whether it still counted when it ended.
    thread: Option<JoinHandle<bool>>,
}

impl Drop for Signals {
    fn drop(&mut self) {
        self.handle.close();
        let counted = self
            .thread
            .take()
            .is_some_and(|thread| thread.join().unwrap_or(true));
        if counted {
            let _ = Self::count(-1);
        }
    }
}

impl Signals {
    pub(crate) fn watch(stop: StopHandle) -> std::io::Result<Self> {
        // First the stream: from then on no signal is lost.
        let mut stream = Stream::new([SIGTERM, SIGINT])?;
        let handle = stream.handle();
        let thread = std::thread::Builder::new()
            .name("gatun-signals".into())
            .spawn(move || {
                for signal in stream.forever() {
                    log::info!("gatun: signal {signal}: the worker stops");
                    stop.stop();
                    if stop.level() == Level::Now {
                        // A database that does not answer holds a thread that nothing can end; a third signal ends all.
                        let _ = Self::count(-1);
                        return false;
                    }
                }
                true
            })?;
        let signals = Signals {
            handle,
            thread: Some(thread),
        };
        Self::count(1)?;
        Ok(signals)
    }

    /// Counts the workers of this process that heed signals. While there is none, a signal does again what it does to any
    /// program: an app that hangs after its worker has ended can be ended.
    fn count(change: isize) -> std::io::Result<()> {
        static WATCHERS: Mutex<isize> = Mutex::new(0);
        static UNWATCHED: OnceLock<Arc<AtomicBool>> = OnceLock::new();
        let mut watchers = WATCHERS.lock().unwrap_or_else(PoisonError::into_inner);
        if UNWATCHED.get().is_none() {
            let unwatched = Arc::new(AtomicBool::new(true));
            for signal in [SIGTERM, SIGINT] {
                register_conditional_default(signal, Arc::clone(&unwatched))?;
            }
            let _ = UNWATCHED.set(unwatched);
        }
        *watchers += change;
        if let Some(unwatched) = UNWATCHED.get() {
            unwatched.store(*watchers == 0, Ordering::SeqCst);
        }
        Ok(())
    }
}
