//! A thread of a run: takes a partition, does a batch, and again, until every partition is drained and a look over the whole
//! table finds nothing.

use crate::options::Size;
use crate::run::{Conn, Db, GLANCE, Shared, Stop};
use crate::session::Session;
use crate::settle::{ATTEMPTS, Settled};
use crate::sweep::{Next, Went};
use crate::table::Span;
use crate::{KeyValue, PartitionConnection, PartitionError};
use diesel::deserialize::QueryableByName;
use diesel::r2d2::ManageConnection;
use std::marker::PhantomData;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

/// Runs all threads, the first with the connection that is open already.
pub(crate) fn all<M, T, F>(shared: &Shared<'_, M>, conn: Conn<M>, work: &F) -> Result<(), Stop>
where
    M: ManageConnection,
    M::Connection: PartitionConnection,
    T: QueryableByName<Db<M>> + 'static,
    F: Fn(&[T], &mut M::Connection) -> anyhow::Result<()> + Sync,
{
    let left = &AtomicUsize::new(shared.partition.threads);
    std::thread::scope(|scope| {
        let reporter = shared
            .progress()
            .start(scope)
            .map_err(|error| Stop::Error(error.into()))?;
        let mut conn = Some(conn);
        let mut threads = Vec::new();
        let mut result = Ok(());
        for number in 0..shared.partition.threads {
            let mut hand = Hand::new(shared, work, conn.take());
            let thread = std::thread::Builder::new().name(format!("gatun-partition-{number}"));
            match thread.spawn_scoped(scope, move || {
                let mut result = catch_unwind(AssertUnwindSafe(|| hand.go()));
                if let Ok(Err(Stop::Error(PartitionError::Connect(error)))) = &result
                    && (left.fetch_sub(1, Ordering::SeqCst) > 1 || shared.sweep.end().is_some())
                {
                    log::warn!(
                        "gatun partition: a thread leaves, and the others go on: no connection: {error}"
                    );
                    result = Ok(Ok(()));
                }
                if !matches!(result, Ok(Ok(()))) {
                    // Before anybody waits for the partition that this thread had.
                    shared.sweep.stop();
                }
                result
            }) {
                Ok(thread) => threads.push(thread),
                Err(error) => {
                    shared.sweep.stop();
                    result = Err(Stop::Error(error.into()));
                    break;
                }
            }
        }
        for thread in threads {
            let ended = thread
                .join()
                .and_then(|ended| ended)
                .unwrap_or_else(|panic| resume_unwind(panic));
            result = result.and(ended);
        }
        drop(reporter);
        result
    })
}

pub(crate) struct Hand<'a, M: ManageConnection, T, F>
where
    M::Connection: PartitionConnection,
{
    pub(crate) shared: &'a Shared<'a, M>,
    pub(crate) work: &'a F,
    pub(crate) session: Session<M>,
    size: Size,
    rows: PhantomData<fn() -> T>,
}

impl<'a, M, T, F> Hand<'a, M, T, F>
where
    M: ManageConnection,
    M::Connection: PartitionConnection,
    T: QueryableByName<Db<M>> + 'static,
    F: Fn(&[T], &mut M::Connection) -> anyhow::Result<()>,
{
    fn new(shared: &'a Shared<'a, M>, work: &'a F, conn: Option<Conn<M>>) -> Self {
        let options = shared.partition;
        Hand {
            shared,
            work,
            session: Session::new(conn),
            size: Size::new(options.batch, options.target, options.batch_bounds),
            rows: PhantomData,
        }
    }

    fn go(&mut self) -> Result<(), Stop> {
        let sweep = &self.shared.sweep;
        let mut before = None;
        while self.may_start() {
            // First, so that nobody waits meanwhile for a partition that this thread has.
            if self.session.connect(self.shared)?.is_none() {
                break;
            }
            match sweep.next(before) {
                Next::Batch(part, cursor) => {
                    before = Some(part);
                    let went = self.batch(part, cursor);
                    let (went, result) = match went {
                        Ok(went) => (went, Ok(())),
                        Err(stop) => (Went::Ended, Err(stop)),
                    };
                    let is_onward = sweep.went(part, went);
                    result?;
                    if !is_onward {
                        return Err(Stop::Error(self.shared.plan.table.circle()));
                    }
                }
                Next::Look => {
                    let strays = self.look().inspect_err(|_| sweep.gave_up_look())?;
                    sweep.looked(&strays);
                }
                // A stop is looked for now and then.
                Next::Wait(time) => sweep.wait(time.min(Duration::from_millis(100))),
                Next::End => return Ok(()),
            }
        }
        sweep.stop();
        Ok(())
    }

    /// Waits while the run is paused or throttled; `false` means stop.
    pub(crate) fn may_start(&self) -> bool {
        let shared = self.shared;
        let options = shared.partition;
        if options.control.is_paused() {
            log::info!("gatun partition: paused");
            while options.control.is_paused() {
                if !shared.sleep(GLANCE) {
                    return false;
                }
                shared.sweep.progressed(None);
            }
        }
        if let Some(throttle) = &options.throttle {
            while let Some(pause) = throttle() {
                shared.tally.throttle(Some(&pause.reason));
                if !shared.sleep(pause.time) {
                    return false;
                }
                shared.sweep.progressed(None);
            }
            shared.tally.throttle(None);
        }
        !options.control.is_stopped()
    }

    /// Does the next batch of a partition, in halves where it fails.
    fn batch(&mut self, part: usize, cursor: Option<KeyValue>) -> Result<Went, Stop> {
        let limit = self.size.rows();
        let start = Instant::now();
        Ok(match self.settle(part, &Span::After(cursor), limit, ATTEMPTS)? {
            Settled::Done { found, last } => {
                self.size.learn(found, start.elapsed());
                if found < limit {
                    Went::Drained
                } else {
                    Went::On(last)
                }
            }
            Settled::Busy => Went::Busy,
            Settled::Failed(keys, error) => {
                // None is left where all of them are committed in spite of the failure.
                let last = keys.last().cloned();
                if self.bisect(part, keys, error)? {
                    Went::On(last)
                } else {
                    Went::Ended
                }
            }
            Settled::Ended => Went::Ended,
        })
    }
}
