use std::io;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread::{self, JoinHandle};
use std::time::Duration;

/// A thread that attends to something that is held, until it is told to stop. It is joined, unless it hangs: no thread can
/// be ended from outside, and whoever holds the thing must not hang with it.
#[derive(Debug)]
pub(crate) struct Attendant<T> {
    stop: Option<Sender<()>>,
    done: Receiver<T>,
    thread: Option<JoinHandle<()>>,
}

impl<T: Send + 'static> Attendant<T> {
    /// Runs `work` until it ends, which it must soon do when its channel is closed.
    pub(crate) fn start(
        name: &str,
        work: impl FnOnce(&Receiver<()>) -> T + Send + 'static,
    ) -> io::Result<Self> {
        let (stop, is_stopped) = channel();
        let (done, is_done) = channel();
        let thread = thread::Builder::new().name(name.into()).spawn(move || {
            // What it has is dropped before the answer, so that a pool has its connection back by then.
            let value = work(&is_stopped);
            let _ = done.send(value);
        })?;
        Ok(Self {
            stop: Some(stop),
            done: is_done,
            thread: Some(thread),
        })
    }

    /// Tells it to stop, and gives what its work gave.
    ///
    /// # Errors
    /// `Timeout`: it hangs, and is left to end when it can. `Disconnected`: it panicked, or was told before.
    pub(crate) fn end(&mut self, patience: Duration) -> Result<T, RecvTimeoutError> {
        let thread = self.thread.take().ok_or(RecvTimeoutError::Disconnected)?;
        drop(self.stop.take());
        let result = self.done.recv_timeout(patience);
        if !matches!(result, Err(RecvTimeoutError::Timeout)) {
            let _ = thread.join();
        }
        result
    }
}
