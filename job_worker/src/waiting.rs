use job_core::ClaimedJob;
use std::collections::VecDeque;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// How much work a thread is woken for. With jobs of microseconds a few threads do all, and to wake each of many costs more
/// than the jobs.
const WORTH: Duration = Duration::from_micros(500);

/// How long a job may wait beside a performer that has nothing to do.
pub(crate) const LATE: Duration = Duration::from_millis(2);

/// The claimed jobs that no performer has taken up yet.
#[derive(Debug, Default)]
pub(crate) struct Waiting {
    state: Mutex<State>,
    called: Condvar,
}

#[derive(Debug, Default)]
struct State {
    jobs: VecDeque<ClaimedJob>,
    /// How many performers wait for a job, and how many of them have been called.
    idle: usize,
    called: usize,
    /// When jobs were last added.
    since: Option<Instant>,
    /// How many have been taken up, ever.
    taken_up: usize,
    closed: bool,
}

impl State {
    fn has_uncalled(&self) -> bool {
        !self.jobs.is_empty() && self.called < self.idle
    }
}

impl Waiting {
    /// Adds jobs that will take so long each, as far as is known, and calls as many performers as they are worth.
    pub(crate) fn add(&self, jobs: Vec<ClaimedJob>, each: Duration) {
        let all = each.saturating_mul(u32::try_from(jobs.len()).unwrap_or(u32::MAX));
        let worth = all.as_nanos().div_ceil(WORTH.as_nanos()).max(1);
        let worth = usize::try_from(worth).unwrap_or(usize::MAX);
        let mut state = self.state();
        state.jobs.extend(jobs);
        state.since = Some(Instant::now());
        self.call(&mut state, worth);
    }

    /// Takes the next job up, when there is one; `None` when there will be none.
    pub(crate) fn take_up(&self) -> Option<ClaimedJob> {
        let mut state = self.state();
        loop {
            if let Some(job) = state.jobs.pop_front() {
                state.taken_up += 1;
                // The first ones were called in vain, or have longer jobs than was thought.
                if state.has_uncalled() && state.since.is_some_and(|since| since.elapsed() > WORTH) {
                    self.call(&mut state, 1);
                }
                return Some(job);
            }
            if state.closed {
                return None;
            }
            state.idle += 1;
            state = self.called.wait(state).unwrap_or_else(PoisonError::into_inner);
            state.idle -= 1;
            state.called = state.called.saturating_sub(1);
        }
    }

    /// Gives whether jobs wait beside performers that were not called, and calls all if that has been so for long: the jobs
    /// take longer than those that were known. To be asked again after [`LATE`] where it is so.
    pub(crate) fn call_late(&self) -> bool {
        let mut state = self.state();
        let uncalled = state.has_uncalled();
        if uncalled && state.since.is_some_and(|since| since.elapsed() >= LATE) {
            let all = state.idle;
            self.call(&mut state, all);
        }
        uncalled
    }

    /// Takes out all, from whoever might have taken them up.
    pub(crate) fn take_back(&self) -> Vec<ClaimedJob> {
        self.state().jobs.drain(..).collect()
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.state().jobs.is_empty()
    }

    /// How many jobs the performers have taken up, ever.
    pub(crate) fn taken_up(&self) -> usize {
        self.state().taken_up
    }

    /// There will be no more jobs.
    pub(crate) fn close(&self) {
        self.state().closed = true;
        self.called.notify_all();
    }

    fn call(&self, state: &mut State, performers: usize) {
        for _ in 0..performers.min(state.idle - state.called) {
            state.called += 1;
            self.called.notify_one();
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use chrono::DateTime;
    use job_core::{JsonText, Ticket};
    use std::sync::Arc;
    use std::thread;

    fn jobs(number: i64) -> Vec<ClaimedJob> {
        let ticket = |job_id| Ticket {
            job_id,
            worker: 1,
            attempts: 1,
            uncharged: 0,
            max_attempts: 1,
            unique: false,
            started_at: DateTime::UNIX_EPOCH,
        };
        (0..number)
            .map(|id| ClaimedJob {
                kind: "any".to_owned(),
                args: JsonText("null".to_owned()),
                ticket: ticket(id),
            })
            .collect()
    }

    /// Performers that take up one job each and keep at it for ever; gives them when all are idle.
    fn idle_performers(waiting: &Arc<Waiting>, number: usize) {
        for _ in 0..number {
            let waiting = Arc::clone(waiting);
            thread::spawn(move || {
                waiting.take_up();
                loop {
                    thread::park();
                }
            });
        }
        await_that(|| waiting.state().idle == number);
    }

    fn await_that(is_so: impl Fn() -> bool) {
        while !is_so() {
            thread::yield_now();
        }
    }

    #[test]
    fn fast_jobs_call_few_performers_and_slow_ones_all() {
        let waiting = Arc::new(Waiting::default());
        idle_performers(&waiting, 8);
        waiting.add(jobs(100), Duration::from_micros(10));
        await_that(|| waiting.state().idle == 6);
        waiting.add(jobs(100), Duration::from_secs(1));
        await_that(|| waiting.state().idle == 0);
        assert_eq!(waiting.take_back().len(), 192);
    }

    #[test]
    fn performers_are_called_after_all_when_jobs_take_longer_than_was_known() {
        let waiting = Arc::new(Waiting::default());
        idle_performers(&waiting, 8);
        waiting.add(jobs(100), Duration::from_micros(1));
        await_that(|| waiting.state().idle == 7);
        // The one that was called is busy for ever.
        await_that(|| !waiting.call_late());
        await_that(|| waiting.state().idle == 0);
        assert_eq!(waiting.state().jobs.len(), 92);
    }

    #[test]
    fn jobs_are_taken_up_in_their_order_until_the_end() {
        let waiting = Waiting::default();
        waiting.add(jobs(2), Duration::ZERO);
        waiting.close();
        let ids: Vec<i64> = std::iter::from_fn(|| waiting.take_up())
            .map(|job| job.id())
            .collect();
        assert_eq!(ids, [0, 1]);
        assert!(waiting.is_empty());
    }
}
