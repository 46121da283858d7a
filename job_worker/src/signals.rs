use crate::stop::StopHandle;
use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::iterator::{Handle, Signals as Stream};
use std::thread::JoinHandle;

/// Turns SIGTERM and SIGINT into a stop, until it is ended.
pub(crate) struct Signals {
    handle: Handle,
    thread: JoinHandle<()>,
}

impl Signals {
    pub(crate) fn watch(stop: StopHandle) -> std::io::Result<Self> {
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
    }
}
