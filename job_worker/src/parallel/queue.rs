use super::hand::{Hand, Indexed};
use super::pace::Pace;
use super::sync::{lock, wait, wait_at_most};
use std::collections::VecDeque;
use std::sync::{Condvar, Mutex, MutexGuard};
use std::time::Duration;

/// How long the feeder waits for room before it looks whether a thread is stuck with outcomes in its hand.
const LOOK_AGAIN: Duration = Duration::from_millis(20);

/// The items between the feeder and the threads.
#[derive(Debug)]
pub(super) struct Queue<T> {
    state: Mutex<State<T>>,
    /// Wakes threads: there are items, or there will be none.
    more: Condvar,
    /// Wakes the feeder.
    room: Condvar,
}

#[derive(Debug)]
struct State<T> {
    items: VecDeque<Indexed<T>>,
    /// No items will come.
    closed: bool,
    /// Threads that wait, and those of them that were woken and have not noticed yet.
    waiting: usize,
    woken: usize,
    /// Threads that have not left.
    threads: usize,
    /// Items that were pulled from the input, that are finished, and that were told.
    pulled: usize,
    finished: usize,
    told: usize,
    feeder_waits: bool,
    /// The queue's length where the caller has set it, and the window where there is one.
    fixed: Option<usize>,
    window: usize,
    pace: Pace,
}

/// Whether the feeder may go on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Room {
    /// Pull an item.
    Free,
    /// Wait.
    Full,
    /// There is no thread to give it to.
    NoThreads,
}

impl<T> Queue<T> {
    pub(super) fn new(threads: usize, fixed: Option<usize>, window: Option<usize>) -> Self {
        Queue {
            state: Mutex::new(State {
                items: VecDeque::new(),
                closed: false,
                waiting: 0,
                woken: 0,
                threads,
                pulled: 0,
                finished: 0,
                told: 0,
                feeder_waits: false,
                fixed,
                window: window.unwrap_or(usize::MAX),
                pace: Pace::new(),
            }),
            more: Condvar::new(),
            room: Condvar::new(),
        }
    }

    /// Appends an item that the feeder has pulled.
    pub(super) fn push(&self, item: T) -> Room {
        let mut state = lock(&self.state);
        let index = state.pulled;
        state.pulled += 1;
        state.items.push_back((index, item));
        let room = state.room(false);
        if state.woken < state.waiting {
            state.woken += 1;
            drop(state);
            self.more.notify_one();
        }
        room
    }

    /// Waits a moment for room, once it is full until a good part is free.
    pub(super) fn wait_for_room(&self, was_full: bool) -> Room {
        let state = lock(&self.state);
        match state.room(was_full) {
            Room::Full => self.feeder_waits(state).room(true),
            room => room,
        }
    }

    /// Waits a moment for the threads to leave, and gives whether they have.
    pub(super) fn wait_for_threads(&self) -> bool {
        let state = lock(&self.state);
        state.threads == 0 || self.feeder_waits(state).threads == 0
    }

    fn feeder_waits<'a>(&self, mut state: MutexGuard<'a, State<T>>) -> MutexGuard<'a, State<T>> {
        state.feeder_waits = true;
        let mut state = wait_at_most(&self.room, state, LOOK_AGAIN);
        state.feeder_waits = false;
        state
    }

    /// Says that no items will come.
    pub(super) fn close(&self) {
        lock(&self.state).closed = true;
        self.more.notify_all();
    }

    /// Notes that so many more items are finished, and so many were told in all.
    pub(super) fn finish(&self, items: usize, told: usize) {
        let mut state = lock(&self.state);
        state.finished += items;
        state.told = state.told.max(told);
        let free = state.feeder_waits && !state.closed && state.room(true) != Room::Full;
        drop(state);
        if free {
            self.room.notify_one();
        }
    }

    /// Fills the thread's empty hand, waits if there is nothing, and gives false when there will be nothing.
    pub(super) fn refill<R, E>(&self, hands: &[Hand<T, R, E>], me: usize, pace: (usize, Duration)) -> bool {
        let mut state = lock(&self.state);
        if pace.0 > 0 {
            state.pace.learn(pace.0, pace.1);
        }
        loop {
            if !state.items.is_empty() {
                // Near the end each takes its share of what is left.
                let share = state.items.len().div_ceil(state.threads.max(1));
                let chunk = state.pace.chunk().min(share);
                hands[me].fill(state.items.drain(..chunk));
                return true;
            }
            // Hands are filled under the lock of the queue only, so that whoever waits below knows that all are empty.
            let others = hands.iter().enumerate().filter(|(other, _)| *other != me);
            let taken = others
                .map(|(_, hand)| hand.take_half())
                .find(|half| !half.is_empty());
            if let Some(items) = taken {
                hands[me].fill(items.into_iter());
                return true;
            }
            if state.closed {
                return false;
            }
            state.waiting += 1;
            while state.woken == 0 && !state.closed {
                state = wait(&self.more, state);
            }
            state.waiting -= 1;
            state.woken = state.woken.saturating_sub(1);
        }
    }

    /// Says that a thread has left. What it had in hand goes back to the front, under the lock: whoever looks for items sees
    /// them in the hand or in the queue, and never takes the last ones for gone.
    pub(super) fn leave<R, E>(&self, hand: &Hand<T, R, E>) {
        let mut state = lock(&self.state);
        state.threads -= 1;
        let mut unstarted = hand.take_all();
        unstarted.append(&mut state.items);
        state.items = unstarted;
        state.woken = state.waiting;
        drop(state);
        self.more.notify_all();
        self.room.notify_one();
    }

    pub(super) fn is_empty(&self) -> bool {
        lock(&self.state).items.is_empty()
    }

    /// Takes what nobody has started.
    pub(super) fn take_rest(&self) -> VecDeque<Indexed<T>> {
        std::mem::take(&mut lock(&self.state).items)
    }
}

impl<T> State<T> {
    /// Whether there is room, or after it was full: so much that it is worth waking the feeder.
    fn room(&self, was_full: bool) -> Room {
        if self.threads == 0 {
            return Room::NoThreads;
        }
        let queue = self.fixed.unwrap_or_else(|| self.pace.queue(self.threads));
        let worth = if was_full { (queue / 4).max(1) } else { 1 };
        let free = self
            .threads
            .saturating_add(queue)
            .saturating_sub(self.pulled - self.finished);
        if free >= worth && self.pulled - self.told < self.window {
            Room::Free
        } else {
            Room::Full
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Barrier;
    use std::thread;

    /// The window in which an item could be neither in a hand nor in the queue was a few instructions wide, so it takes
    /// many rounds, and a third thread that keeps the lock busy.
    #[test]
    fn what_a_thread_leaves_behind_is_always_found_by_the_others() {
        for _ in 0..5_000 {
            let queue = Queue::new(2, Some(1), None);
            let hands: Vec<Hand<_, (), ()>> = (0..2).map(|_| Hand::new()).collect();
            let pace = (0, Duration::ZERO);
            queue.push("the last item");
            queue.close();
            assert!(queue.refill(&hands, 0, pace));
            let barrier = Barrier::new(3);
            thread::scope(|scope| {
                scope.spawn(|| {
                    barrier.wait();
                    queue.leave(&hands[0]);
                });
                scope.spawn(|| {
                    barrier.wait();
                    (0..100).for_each(|_| queue.finish(0, 0));
                });
                barrier.wait();
                assert!(queue.refill(&hands, 1, pace), "the item was nowhere");
            });
            assert_eq!(hands[1].next(None), Some((0, "the last item")));
        }
    }
}
