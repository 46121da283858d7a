use super::error::ThreadError;
use super::hand::{Hand, Indexed};
use super::options::{Halt, Options};
use super::outcome::Outcome;
use super::queue::Queue;
use super::sink::Sink;
use super::sync::lock;
use super::token::{Level, StopToken};
use std::sync::Mutex;
use std::sync::atomic::{AtomicU8, AtomicUsize, Ordering};

/// What the feeder and the threads share.
pub(super) struct Shared<'a, T, R, E> {
    pub(super) queue: Queue<T>,
    pub(super) hands: Vec<Hand<T, R, E>>,
    pub(super) sink: Mutex<Sink<'a, R, E>>,
    pub(super) thread_errors: Mutex<Vec<ThreadError>>,
    stop: StopToken,
    halt: Halt,
    /// How far a halt has come, as a number.
    halted: AtomicU8,
    failures: AtomicUsize,
}

impl<'a, T, R, E> Shared<'a, T, R, E> {
    pub(super) fn new(
        threads: usize,
        options: &Options<'_>,
        window: Option<usize>,
        sink: Sink<'a, R, E>,
    ) -> Self {
        Shared {
            queue: Queue::new(threads, options.queue, window),
            hands: (0..threads).map(|_| Hand::new()).collect(),
            sink: Mutex::new(sink),
            thread_errors: Mutex::new(Vec::new()),
            stop: options.stop.clone(),
            halt: options.halt,
            halted: AtomicU8::new(Level::Running as u8),
            failures: AtomicUsize::new(0),
        }
    }

    /// Whether to go on: the further of halt and stop.
    pub(super) fn level(&self) -> Level {
        Level::of(self.halted.load(Ordering::Acquire)).max(self.stop.level())
    }

    pub(super) fn is_halted(&self) -> bool {
        self.halted.load(Ordering::Acquire) > Level::Running as u8
    }

    pub(super) fn raise(&self, level: Level) {
        self.halted.fetch_max(level as u8, Ordering::AcqRel);
    }

    /// Counts a failure, and halts when it is one too many.
    pub(super) fn count_failure(&self) {
        let failures = self.failures.fetch_add(1, Ordering::AcqRel) + 1;
        match self.halt {
            Halt::Soon { after } if failures >= after => self.raise(Level::Soon),
            Halt::Now { after } if failures >= after => self.raise(Level::Now),
            _ => {}
        }
    }

    /// Tells the outcomes in a hand. The buffer is empty before and after.
    pub(super) fn tell(&self, hand: &Hand<T, R, E>, buffer: &mut Vec<Indexed<Outcome<R, E>>>) {
        hand.take_outcomes(buffer);
        if !buffer.is_empty() {
            let finished = buffer.len();
            let told = lock(&self.sink).take(buffer);
            if told.is_none() {
                self.raise(Level::Now);
            }
            self.queue.finish(finished, told.unwrap_or(0));
        }
    }

    pub(super) fn note(&self, error: ThreadError) {
        log::warn!("in_parallel: a thread less: {error}");
        lock(&self.thread_errors).push(error);
    }
}
