use super::outcome::Outcome;
use super::sync::lock;
use std::collections::VecDeque;
use std::sync::Mutex;

/// Items by their index, and outcomes by the same.
pub(super) type Indexed<T> = (usize, T);

/// What one thread has taken and what it has to tell. Others look into it: a thread with nothing to do takes items from
/// here, and the feeder takes outcomes, so that none waits for a slow item before it.
///
/// Each has its own cache lines: its thread locks it once for each item.
#[derive(Debug)]
#[repr(align(128))]
pub(super) struct Hand<T, R, E>(Mutex<Held<T, R, E>>);

#[derive(Debug)]
struct Held<T, R, E> {
    items: VecDeque<Indexed<T>>,
    outcomes: Vec<Indexed<Outcome<R, E>>>,
}

impl<T, R, E> Hand<T, R, E> {
    pub(super) fn new() -> Self {
        Hand(Mutex::new(Held {
            items: VecDeque::new(),
            outcomes: Vec::new(),
        }))
    }

    /// Lays down the outcome of the last item and gives the next one.
    pub(super) fn next(&self, outcome: Option<Indexed<Outcome<R, E>>>) -> Option<Indexed<T>> {
        let mut held = lock(&self.0);
        held.outcomes.extend(outcome);
        held.items.pop_front()
    }

    /// Lays down the outcome of the last item.
    pub(super) fn lay_down(&self, outcome: Option<Indexed<Outcome<R, E>>>) {
        lock(&self.0).outcomes.extend(outcome);
    }

    /// Takes the outcomes, in exchange for an empty vector.
    pub(super) fn take_outcomes(&self, empty: &mut Vec<Indexed<Outcome<R, E>>>) {
        std::mem::swap(&mut lock(&self.0).outcomes, empty);
    }

    /// Gives the hand items to do.
    pub(super) fn fill(&self, items: impl Iterator<Item = Indexed<T>>) {
        lock(&self.0).items.extend(items);
    }

    /// Takes the later half of the items, the larger one.
    pub(super) fn take_half(&self) -> VecDeque<Indexed<T>> {
        let mut held = lock(&self.0);
        let first = held.items.len() / 2;
        held.items.split_off(first)
    }

    /// Takes all items.
    pub(super) fn take_all(&self) -> VecDeque<Indexed<T>> {
        std::mem::take(&mut lock(&self.0).items)
    }
}
