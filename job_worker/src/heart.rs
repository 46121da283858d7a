use crate::options::jittered;
use crate::session::Session;
use crate::stop::StopHandle;
use diesel::r2d2::R2D2Connection;
use job_core::{JobConnection, WorkerRow};
use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant, SystemTime};

/// Who this worker is, and whether the others still believe that it lives.
#[derive(Debug)]
pub(crate) struct Pulse {
    worker: AtomicI64,
    trust: Duration,
    /// When the last beat that succeeded began, by both clocks: the monotonic one stands still while a machine sleeps.
    last: Mutex<(Instant, SystemTime)>,
}

impl Pulse {
    pub(crate) fn new(worker: i64, rescue_after: Duration) -> Self {
        Pulse {
            worker: AtomicI64::new(worker),
            trust: rescue_after.mul_f64(0.6),
            last: Mutex::new((Instant::now(), SystemTime::now())),
        }
    }

    /// The worker's id; another one after it was declared dead.
    pub(crate) fn worker(&self) -> i64 {
        self.worker.load(Ordering::Acquire)
    }

    /// Whether the last beat is so young that nobody can have declared this worker dead, if all workers of the database have
    /// the same `rescue_after`. If not, it must not claim, nor start what it has claimed.
    pub(crate) fn is_trusted(&self) -> bool {
        let (instant, time) = *self.last.lock().unwrap_or_else(PoisonError::into_inner);
        // A clock that was set back says nothing.
        instant.elapsed() < self.trust && time.elapsed().unwrap_or_default() < self.trust
    }

    fn beaten(&self, began: (Instant, SystemTime)) {
        *self.last.lock().unwrap_or_else(PoisonError::into_inner) = began;
    }
}

/// Beats until `end` is raised; it is the last thread to stop.
pub(crate) fn beat<C>(
    session: &mut Session<C>,
    pulse: &Pulse,
    row: &WorkerRow,
    interval: Duration,
    end: &StopHandle,
) where
    C: JobConnection + R2D2Connection + 'static,
{
    loop {
        let began = (Instant::now(), SystemTime::now());
        let worker = pulse.worker();
        match session.run(|conn| WorkerRow::beat(conn, worker)) {
            Some(Ok(true)) => pulse.beaten(began),
            Some(Ok(false)) => match session.run(|conn| WorkerRow::register(conn, &row.queues, &row.kinds)) {
                Some(Ok(new)) => {
                    log::warn!(
                        "gatun: worker {worker} was declared dead, its jobs are rescued; it goes on as {}",
                        new.id
                    );
                    pulse.worker.store(new.id, Ordering::Release);
                    pulse.beaten(began);
                }
                Some(Err(error)) => {
                    log::error!("gatun heart: worker {worker} was declared dead, and cannot go on: {error}");
                }
                None => {}
            },
            Some(Err(error)) => log::error!("gatun heart: {error}"),
            None => {}
        }
        if end.wait_for(crate::stop::Level::Stopping, jittered(interval)) {
            break;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pulse_after(monotonic: Duration, wall: Duration) -> Pulse {
        let pulse = Pulse::new(1, Duration::from_secs(1));
        pulse.beaten((
            Instant::now().checked_sub(monotonic).unwrap(),
            SystemTime::now().checked_sub(wall).unwrap(),
        ));
        pulse
    }

    /// Case 21: a machine that slept must not act on a stale claim, and one of the clocks stood still while it slept.
    #[test]
    fn a_pulse_is_not_trusted_after_a_long_silence_by_either_clock() {
        let (short, long) = (Duration::ZERO, Duration::from_secs(2));
        assert!(pulse_after(short, short).is_trusted());
        assert!(!pulse_after(long, short).is_trusted());
        assert!(!pulse_after(short, long).is_trusted());
        assert!(!pulse_after(long, long).is_trusted());
    }

    #[test]
    fn a_clock_that_was_set_back_says_nothing() {
        let pulse = Pulse::new(1, Duration::from_secs(1));
        pulse.beaten((Instant::now(), SystemTime::now() + Duration::from_secs(3600)));
        assert!(pulse.is_trusted());
    }

    #[test]
    fn a_beat_restores_the_trust() {
        let pulse = pulse_after(Duration::from_secs(2), Duration::from_secs(3600));
        pulse.beaten((Instant::now(), SystemTime::now()));
        assert!(pulse.is_trusted());
    }
}
