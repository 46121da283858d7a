//! Whether what is pending gets less. A row that is done is there and no longer pending, or it is gone. If it is gone, it may
//! have another key and come again for ever, which nothing but the number of pending rows tells.

use std::sync::{Mutex, MutexGuard, PoisonError};

/// Fewer rows than these are not worth a count.
const FEW: u64 = 100;

/// How often in succession the rows may be no fewer, though as many were done as there were.
const PATIENCE: u32 = 10;

#[derive(Debug, Default)]
struct State {
    /// How many rows the run has when it next looks whether those of a batch are there.
    next_look: u64,
    /// Whether rows were gone at such a look.
    is_watched: bool,
    /// How many rows were done since the last count, and what that was.
    done: u64,
    pending: Option<u64>,
    /// How often the count was no lower than the one before.
    highs: u32,
}

#[derive(Debug, Default)]
pub(crate) struct Ebb(Mutex<State>);

impl Ebb {
    /// Whether to look if the rows of this batch are there: at the first one, and whenever twice as many are done.
    pub(crate) fn wants_look(&self, rows: u64) -> bool {
        let mut state = self.state();
        if state.is_watched || rows < state.next_look {
            return false;
        }
        state.next_look = rows * 2 + 1;
        true
    }

    /// Rows were gone.
    pub(crate) fn watch(&self) {
        self.state().is_watched = true;
    }

    /// Whether as many rows were done as were pending, so that they are to be counted again.
    pub(crate) fn wants_count(&self, done: usize) -> bool {
        let mut state = self.state();
        state.done += done as u64;
        let is_due = state.is_watched && state.done >= state.pending.unwrap_or(0).max(FEW);
        if is_due {
            state.done = 0;
        }
        is_due
    }

    /// Takes note of a count; `false` where there is no end to be seen.
    pub(crate) fn counted(&self, pending: u64) -> bool {
        let mut state = self.state();
        let is_low = pending == 0 || state.pending.is_none_or(|before| pending < before);
        state.highs = if is_low { 0 } else { state.highs + 1 };
        state.pending = Some(pending);
        state.highs < PATIENCE
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::{Ebb, FEW, PATIENCE};

    #[test]
    fn only_a_run_whose_rows_never_get_fewer_has_no_end() {
        let ebb = Ebb::default();
        assert!(ebb.wants_look(0) && !ebb.wants_look(0) && ebb.wants_look(500));
        assert!(!ebb.wants_count(1_000_000), "nothing is gone");
        ebb.watch();
        assert!(!ebb.wants_look(1_000_000));
        assert!(ebb.wants_count(1));
        assert!(ebb.counted(1_000));
        assert!(!ebb.wants_count(999) && ebb.wants_count(1));
        for round in 0..u64::from(PATIENCE) * 3 {
            // It rises and falls.
            assert!(ebb.counted(1_000 + round % 7));
        }
        assert!(ebb.counted(999));
        assert!((1..PATIENCE).all(|_| ebb.counted(2_000)));
        assert!(!ebb.counted(2_000));
        assert!(ebb.counted(0));
        assert!(!ebb.wants_count(FEW as usize - 1) && ebb.wants_count(1));
    }
}
