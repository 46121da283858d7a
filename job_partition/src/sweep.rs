//! Which partition is next: what the threads of one run share. Other processes are met only at the partitions' locks.

use crate::KeyValue;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

const FIRST_PAUSE: Duration = Duration::from_millis(5);
const LONGEST_PAUSE: Duration = Duration::from_millis(500);

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
    /// There may be more rows behind this key.
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

#[derive(Clone, Debug, Default)]
struct Part {
    /// Its place among the open ones; `None` where it is drained.
    place: Option<usize>,
    taken: bool,
    cursor: Option<KeyValue>,
    /// How often it was found busy since it last was not, and until when it is left alone.
    refusals: u32,
    not_before: Option<Instant>,
}

#[derive(Debug)]
struct State {
    parts: Vec<Part>,
    /// Those that are not drained, in any order: a search through all of them for each of them takes too long where they are
    /// tens of thousands.
    open: Vec<usize>,
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
                parts: (0..parts)
                    .map(|at| Part {
                        place: Some(at),
                        ..Part::default()
                    })
                    .collect(),
                open: (0..parts).collect(),
                looking: false,
                end: None,
                progress: Instant::now(),
            }),
            changed: Condvar::new(),
            patience,
            one_lock,
        }
    }

    /// Chooses what is next, the partition that the thread had before if that can be. Otherwise the search starts anywhere, so
    /// that workers who arrive do not queue up for the same one.
    pub(crate) fn next(&self, before: Option<usize>) -> Next {
        let mut state = self.state();
        if state.end.is_some() {
            return Next::End;
        }
        let now = Instant::now();
        let is_free =
            |part: &Part| part.place.is_some() && !part.taken && part.not_before.is_none_or(|at| at <= now);
        let (behind, ahead) = state.open.split_at(fastrand::usize(..=state.open.len()));
        let found = before
            .into_iter()
            .chain(ahead.iter().chain(behind).copied())
            .find(|&at| is_free(&state.parts[at]));
        if let Some(at) = found {
            let part = &mut state.parts[at];
            part.taken = true;
            return Next::Batch(at, part.cursor.clone());
        }
        if state.looking || state.open().any(|part| part.taken) {
            return Next::Wait(LONGEST_PAUSE);
        }
        let Some(soonest) = state.open().filter_map(|part| part.not_before).min() else {
            state.looking = true;
            return Next::Look;
        };
        if state.progress.elapsed() > self.patience {
            let busy = state.open.len();
            self.finish(&mut state, End::Busy(busy));
            return Next::End;
        }
        Next::Wait(soonest.saturating_duration_since(now))
    }

    pub(crate) fn went(&self, at: usize, went: Went) {
        let mut state = self.state();
        let part = &mut state.parts[at];
        part.taken = false;
        match went {
            Went::On(cursor) => {
                part.cursor = cursor;
                part.not_before = None;
            }
            Went::Drained => {
                part.not_before = None;
                state.close(at);
            }
            Went::Busy => {
                part.leave_alone();
                let until = part.not_before;
                if self.one_lock {
                    let State { parts, open, .. } = &mut *state;
                    open.iter().for_each(|&at| parts[at].not_before = until);
                }
            }
            Went::Ended => {}
        }
        drop(state);
        self.changed.notify_all();
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
            state.open_again(at);
        }
        if state.progress.elapsed() > self.patience {
            let busy = state.open.len();
            self.finish(&mut state, End::Busy(busy));
        }
        drop(state);
        self.changed.notify_all();
    }

    /// Rows were done, or there was a reason to wait that is not somebody else's lock: patience starts anew.
    pub(crate) fn progressed(&self, at: Option<usize>) {
        let mut state = self.state();
        state.progress = Instant::now();
        if let Some(at) = at {
            state.parts[at].refusals = 0;
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
        state.parts.len() - state.open.len()
    }

    fn finish(&self, state: &mut State, end: End) {
        state.end.get_or_insert(end);
        self.changed.notify_all();
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    fn open(&self) -> impl Iterator<Item = &Part> {
        self.open.iter().map(|&at| &self.parts[at])
    }

    fn close(&mut self, at: usize) {
        let Some(place) = self.parts[at].place.take() else {
            return;
        };
        self.open.swap_remove(place);
        if let Some(&moved) = self.open.get(place) {
            self.parts[moved].place = Some(place);
        }
    }

    fn open_again(&mut self, at: usize) {
        let Some(part) = self.parts.get_mut(at).filter(|part| part.place.is_none()) else {
            return;
        };
        part.place = Some(self.open.len());
        part.cursor = None;
        part.leave_alone();
        self.open.push(at);
    }
}

impl Part {
    fn leave_alone(&mut self) {
        let pause = (FIRST_PAUSE * 2_u32.saturating_pow(self.refusals.min(10))).min(LONGEST_PAUSE);
        self.not_before = Some(Instant::now() + jittered(pause));
        self.refusals += 1;
    }
}

/// A half to three halves of it, so that those who were refused together do not come back together.
pub(crate) fn jittered(pause: Duration) -> Duration {
    pause.mul_f64(0.5 + fastrand::f64())
}
