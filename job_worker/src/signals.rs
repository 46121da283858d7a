use crate::stop::StopHandle;
use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::flag::register_conditional_default;
use signal_hook::iterator::{Handle, Signals as Stream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::thread::JoinHandle;

/// Turns SIGTERM and SIGINT into a stop, until it is ended.
pub(crate) struct Signals {
    handle: Handle,
    thread: JoinHandle<()>,
}

impl Signals {
    pub(crate) fn watch(stop: StopHandle) -> std::io::Result<Self> {
        Self::count(1)?;
        let mut stream = Stream::new([SIGTERM, SIGINT])?;
        let handle = stream.handle();
        let thread = std::thread::Builder::new()
            .name("gatun-signals".into())
            .spawn(move || {
                for signal in stream.forever() {
                    log::info!("gatun: signal {signal}: the worker stops");
                    stop.stop();
                }
            })?;
        Ok(Signals { handle, thread })
    }

    pub(crate) fn end(self) {
        self.handle.close();
        let _ = self.thread.join();
        let _ = Self::count(-1);
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
