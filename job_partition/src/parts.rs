//! The partitions as the threads of one run see them: which are open, and where each of them stands.

use crate::KeyValue;
use crate::trail::Trail;
use std::time::{Duration, Instant};

const FIRST_PAUSE: Duration = Duration::from_millis(5);
pub(crate) const LONGEST_PAUSE: Duration = Duration::from_millis(500);

#[derive(Clone, Debug, Default)]
pub(crate) struct Part {
    /// Its place among the open ones; `None` where it is drained.
    place: Option<usize>,
    pub(crate) taken: bool,
    /// The last rows of its batches in this pass.
    pub(crate) trail: Trail,
    /// How often it was found busy since it last was not, and until when it is left alone.
    pub(crate) refusals: u32,
    pub(crate) not_before: Option<Instant>,
}

#[derive(Debug)]
pub(crate) struct Parts {
    parts: Vec<Part>,
    /// Those that are not drained, in any order: a search through all of them for each of them takes too long where they are
    /// tens of thousands.
    open: Vec<usize>,
}

impl Parts {
    pub(crate) fn new(count: usize) -> Self {
        let parts = (0..count).map(|at| Part {
            place: Some(at),
            ..Part::default()
        });
        Parts {
            parts: parts.collect(),
            open: (0..count).collect(),
        }
    }

    pub(crate) fn count(&self) -> usize {
        self.parts.len()
    }

    pub(crate) fn open_count(&self) -> usize {
        self.open.len()
    }

    pub(crate) fn part(&mut self, at: usize) -> &mut Part {
        &mut self.parts[at]
    }

    pub(crate) fn open(&self) -> impl Iterator<Item = &Part> {
        self.open.iter().map(|&at| &self.parts[at])
    }

    /// Takes one that is free now, the one that the thread had before if that can be. Otherwise the search starts anywhere, so
    /// that workers who arrive do not queue up for the same one.
    pub(crate) fn take(&mut self, before: Option<usize>, now: Instant) -> Option<(usize, Option<KeyValue>)> {
        let is_free =
            |part: &Part| part.place.is_some() && !part.taken && part.not_before.is_none_or(|at| at <= now);
        let (behind, ahead) = self.open.split_at(fastrand::usize(..=self.open.len()));
        let at = before
            .into_iter()
            .chain(ahead.iter().chain(behind).copied())
            .find(|&at| is_free(&self.parts[at]))?;
        let part = &mut self.parts[at];
        part.taken = true;
        Some((at, part.trail.last().cloned()))
    }

    /// Who has one partition's lock may have all.
    pub(crate) fn leave_all_alone(&mut self, until: Option<Instant>) {
        for &at in &self.open {
            self.parts[at].not_before = until;
        }
    }

    pub(crate) fn close(&mut self, at: usize) {
        let Some(place) = self.parts[at].place.take() else {
            return;
        };
        self.open.swap_remove(place);
        if let Some(&moved) = self.open.get(place) {
            self.parts[moved].place = Some(place);
        }
    }

    pub(crate) fn open_again(&mut self, at: usize) {
        let Some(part) = self.parts.get_mut(at).filter(|part| part.place.is_none()) else {
            return;
        };
        part.place = Some(self.open.len());
        part.trail = Trail::default();
        part.leave_alone();
        self.open.push(at);
    }
}

impl Part {
    pub(crate) fn leave_alone(&mut self) {
        let pause = (FIRST_PAUSE * 2_u32.saturating_pow(self.refusals.min(10))).min(LONGEST_PAUSE);
        self.not_before = Some(Instant::now() + jittered(pause));
        self.refusals += 1;
    }
}

/// A half to three halves of it, so that those who were refused together do not come back together.
pub(crate) fn jittered(pause: Duration) -> Duration {
    pause.mul_f64(0.5 + fastrand::f64())
}
