use super::hand::Indexed;
use super::options::{OnProgress, Progress};
use super::outcome::{Outcome, Payload, caught, drop_quietly};
use super::summary::Counts;
use std::collections::VecDeque;

/// Where an outcome goes in the end.
pub(super) type Emit<'a, R, E> = &'a mut (dyn FnMut(usize, Outcome<R, E>) + Send);

/// Takes the outcomes, one batch at a time, and tells them.
pub(super) struct Sink<'a, R, E> {
    emit: Emit<'a, R, E>,
    on_progress: Option<OnProgress<'a>>,
    progress: Progress,
    /// Outcomes that wait for an earlier one, where the order of the input was asked for.
    early: Option<VecDeque<Option<Outcome<R, E>>>>,
    told: usize,
    /// A callback has panicked: none is called again.
    thrown: Option<Payload>,
}

impl<'a, R, E> Sink<'a, R, E> {
    pub(super) fn new(
        emit: Emit<'a, R, E>,
        on_progress: Option<OnProgress<'a>>,
        total: Option<usize>,
        in_order: bool,
    ) -> Self {
        Sink {
            emit,
            on_progress,
            progress: Progress {
                counts: Counts::default(),
                total,
            },
            early: in_order.then(VecDeque::new),
            told: 0,
            thrown: None,
        }
    }

    /// Tells what may be told, and gives how many were told in all; `None` once a callback has panicked.
    pub(super) fn take(&mut self, batch: &mut Vec<Indexed<Outcome<R, E>>>) -> Option<usize> {
        if self.thrown.is_some() {
            batch.drain(..).for_each(drop_quietly);
            return None;
        }
        let told = caught(|| {
            for (index, outcome) in batch.drain(..) {
                self.accept(index, outcome);
            }
            if let Some(on_progress) = &mut self.on_progress {
                on_progress(&self.progress);
            }
        });
        self.thrown = told.err();
        self.thrown.is_none().then_some(self.told)
    }

    fn accept(&mut self, index: usize, outcome: Outcome<R, E>) {
        let Some(early) = &mut self.early else {
            return self.tell(index, outcome);
        };
        let place = index - self.told;
        if early.len() <= place {
            early.resize_with(place + 1, || None);
        }
        early[place] = Some(outcome);
        while let Some(next) = self.early.as_mut().and_then(next_in_order) {
            self.tell(self.told, next);
        }
    }

    fn tell(&mut self, index: usize, outcome: Outcome<R, E>) {
        self.told += 1;
        self.progress.counts.add(outcome.as_ref().map(|_| ()));
        (self.emit)(index, outcome);
    }

    pub(super) fn counts(&self) -> Counts {
        self.progress.counts
    }

    /// The panic of a callback, if there was one. Outcomes that nobody will be told are dropped.
    pub(super) fn end(self) -> Option<Payload> {
        self.early.into_iter().flatten().for_each(drop_quietly);
        self.thrown
    }
}

fn next_in_order<T>(early: &mut VecDeque<Option<T>>) -> Option<T> {
    let next = early.front_mut()?.take()?;
    early.pop_front();
    Some(next)
}
