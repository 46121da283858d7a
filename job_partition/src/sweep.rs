//! Which partition is next: what the threads of one run share. Other processes are met only at the partitions' locks.

use crate::KeyValue;
use crate::parts::{LONGEST_PAUSE, Parts};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// What a thread is to do next.
#[derive(Debug)]
pub(crate) enum Next {
    /// A batch of this partition, behind this key.
    Batch(usize, Option<KeyValue>),
    /// Look over the whole table: every partition is drained.
    Look,
    /// Nothing for now; ask again after this time or when others have come further.
    Wait(Duration),
    /// Nothing any more.
    End,
}

/// How a batch of a partition went.
#[derive(Debug)]
pub(crate) enum Went {
    /// There may be more rows behind this key, or behind the one before.
    On(Option<KeyValue>),
    /// The partition's end was reached.
    Drained,
    /// Somebody else has the lock.
    Busy,
    /// The batch was given up, as the run ends.
    Ended,
}

/// How the passes ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum End {
    /// The last look found nothing pending.
    Complete,
    /// These many partitions could not be had, or not all of their rows.
    Busy(usize),
    /// The run ended for another reason.
    Other,
}

#[derive(Debug)]
struct State {
    parts: Parts,
    looking: bool,
    end: Option<End>,
    progress: Instant,
}

#[derive(Debug)]
pub(crate) struct Sweep {
    state: Mutex<State>,
    changed: Condvar,
    patience: Duration,
    /// Who has one partition's lock has all.
    one_lock: bool,
}

impl Sweep {
    pub(crate) fn new(parts: usize, patience: Duration, one_lock: bool) -> Self {
        Sweep {
            state: Mutex::new(State {
                parts: Parts::new(parts),
                looking: false,
                end: None,
                progress: Instant::now(),
            }),
            changed: Condvar::new(),
            patience,
            one_lock,
        }
    }

    /// Chooses what is next, the partition that the thread had before if that can be.
    pub(crate) fn next(&self, before: Option<usize>) -> Next {
        let mut state = self.state();
        if state.end.is_some() {
            return Next::End;
        }
        let now = Instant::now();
        if let Some((at, cursor)) = state.parts.take(before, now) {
            return Next::Batch(at, cursor);
        }
        if state.looking || state.parts.open().any(|part| part.taken) {
            return Next::Wait(LONGEST_PAUSE);
        }
        let Some(soonest) = state.parts.open().filter_map(|part| part.not_before).min() else {
            state.looking = true;
            return Next::Look;
        };
        if state.progress.elapsed() > self.patience {
            let busy = state.parts.open_count();
            self.finish(&mut state, End::Busy(busy));
            return Next::End;
        }
        Next::Wait(soonest.saturating_duration_since(now))
    }

    /// Takes note of a batch; `false` where the keys lead back to where they were, and would for ever.
    pub(crate) fn went(&self, at: usize, went: Went) -> bool {
        let mut is_onward = true;
        let mut state = self.state();
        let part = state.parts.part(at);
        part.taken = false;
        match went {
            Went::On(cursor) => {
                is_onward = cursor.is_none_or(|key| part.trail.step(key));
                part.not_before = None;
            }
            Went::Drained => {
                part.not_before = None;
                state.parts.close(at);
            }
            Went::Busy => {
                part.leave_alone();
                let until = part.not_before;
                if self.one_lock {
                    state.parts.leave_all_alone(until);
                }
            }
            Went::Ended => {}
        }
        drop(state);
        self.changed.notify_all();
        is_onward
    }

    /// What the look over the whole table found: the partitions that have rows pending after all, such as rows that were
    /// locked by others, or committed after their partition was drained.
    pub(crate) fn looked(&self, strays: &[usize]) {
        let mut state = self.state();
        state.looking = false;
        if strays.is_empty() {
            self.finish(&mut state, End::Complete);
            return;
        }
        for &at in strays {
            state.parts.open_again(at);
        }
        if state.progress.elapsed() > self.patience {
            let busy = state.parts.open_count();
            self.finish(&mut state, End::Busy(busy));
        }
        drop(state);
        self.changed.notify_all();
    }

    /// The thread that was to look has failed: another one is to.
    pub(crate) fn gave_up_look(&self) {
        self.state().looking = false;
        self.changed.notify_all();
    }

    /// Rows were done, or there was a reason to wait that is not somebody else's lock: patience starts anew.
    pub(crate) fn progressed(&self, at: Option<usize>) {
        let mut state = self.state();
        state.progress = Instant::now();
        if let Some(at) = at {
            state.parts.part(at).refusals = 0;
        }
    }

    /// Ends the passes, unless they have ended.
    pub(crate) fn stop(&self) {
        self.finish(&mut self.state(), End::Other);
    }

    /// Waits until something has changed, or for this time.
    pub(crate) fn wait(&self, time: Duration) {
        let state = self.state();
        if state.end.is_none() {
            drop(self.changed.wait_timeout(state, time));
        }
    }

    pub(crate) fn end(&self) -> Option<End> {
        self.state().end
    }

    pub(crate) fn drained(&self) -> usize {
        let state = self.state();
        state.parts.count() - state.parts.open_count()
    }

    fn finish(&self, state: &mut State, end: End) {
        state.end.get_or_insert(end);
        self.changed.notify_all();
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
