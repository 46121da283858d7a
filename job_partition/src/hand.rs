//! A thread of a run: takes a partition, does a batch, and again, until every partition is drained and a look over the whole
//! table finds nothing.

use crate::batch::{Batch, Trouble, attempt};
use crate::options::Size;
use crate::partition::{Conn, Db, Shared, Stop};
use crate::plan::Span;
use crate::session::Session;
use crate::sweep::{Next, Went, jittered};
use crate::{KeyValue, PartitionBackend, PartitionConnection, PartitionError};
use diesel::Connection;
use diesel::deserialize::QueryableByName;
use diesel::r2d2::ManageConnection;
use job_db::{Database, Fault};
use std::marker::PhantomData;
use std::panic::resume_unwind;
use std::time::{Duration, Instant};

/// How often a batch is tried that the database refuses for no fault of its own. After that it may be one: a row that is
/// too much for the server looks the same.
const ATTEMPTS: u32 = 8;
const FIRST_PAUSE: Duration = Duration::from_millis(5);
const LONGEST_PAUSE: Duration = Duration::from_secs(1);

/// How many rows beyond the failed ones a look over the whole table gives, to know the partitions that they are in.
const STRAYS: usize = 1000;

/// Runs all threads, the first with the connection that is open already.
pub(crate) fn all<M, T, F>(shared: &Shared<'_, M>, conn: Conn<M>, work: &F) -> Result<(), Stop>
where
    M: ManageConnection,
    M::Connection: PartitionConnection,
    T: QueryableByName<Db<M>> + 'static,
    F: Fn(&[T], &mut M::Connection) -> anyhow::Result<()> + Sync,
{
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
                let result = hand.go();
                if result.is_err() {
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
            let ended = thread.join().unwrap_or_else(|panic| {
                shared.sweep.stop();
                resume_unwind(panic)
            });
            result = result.and(ended);
        }
        drop(reporter);
        result
    })
}

/// What came of a batch after all attempts.
enum Settled {
    Done { found: usize, last: Option<KeyValue> },
    Busy,
    Failed(Vec<KeyValue>, anyhow::Error),
    Ended,
}

struct Hand<'a, M: ManageConnection, T, F>
where
    M::Connection: PartitionConnection,
{
    shared: &'a Shared<'a, M>,
    work: &'a F,
    session: Session<M>,
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
            match sweep.next(before) {
                Next::Batch(part, cursor) => {
                    before = Some(part);
                    let went = self.batch(part, cursor);
                    let (went, result) = match went {
                        Ok(went) => (went, Ok(())),
                        Err(stop) => (Went::Ended, Err(stop)),
                    };
                    sweep.went(part, went);
                    result?;
                }
                Next::Look => {
                    let strays = self.look()?;
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
    fn may_start(&self) -> bool {
        let options = self.shared.partition;
        if options.control.is_paused() {
            log::info!("gatun partition: paused");
            options.control.may_go_on();
            self.shared.sweep.progressed(None);
        }
        if let Some(throttle) = &options.throttle {
            while let Some(pause) = throttle() {
                self.shared.tally.throttle(Some(&pause.reason));
                if !options.control.sleep(pause.time) {
                    return false;
                }
                self.shared.sweep.progressed(None);
                if self.shared.sweep.end().is_some() {
                    break;
                }
            }
            self.shared.tally.throttle(None);
        }
        options.control.may_go_on()
    }

    /// Does the next batch of a partition, in halves where it fails.
    fn batch(&mut self, part: usize, cursor: Option<KeyValue>) -> Result<Went, Stop> {
        let limit = self.size.rows();
        let start = Instant::now();
        Ok(match self.settle(part, &Span::After(cursor), limit)? {
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

    /// Halves a batch that has failed until each row that fails is alone; every half has a transaction of its own. `false`:
    /// the run ends before.
    fn bisect(&mut self, part: usize, keys: Vec<KeyValue>, error: anyhow::Error) -> Result<bool, Stop> {
        log::warn!(
            "gatun partition: a batch of {} rows failed, and is halved: {error:#}",
            keys.len()
        );
        let mut spans = Vec::new();
        self.halve(keys, &error, &mut spans)?;
        while let Some(keys) = spans.pop() {
            let [first, ..] = keys.as_slice() else { continue };
            let span = Span::Between(first.clone(), keys[keys.len() - 1].clone());
            match self.settle(part, &span, keys.len())? {
                Settled::Done { .. } => {}
                Settled::Failed(keys, error) => self.halve(keys, &error, &mut spans)?,
                // Whoever has the partition now does these rows, or we do when the lock is free.
                Settled::Busy => {
                    spans.push(keys);
                    if !self.shared.partition.control.sleep(jittered(FIRST_PAUSE * 4))
                        || self.shared.sweep.end().is_some()
                    {
                        return Ok(false);
                    }
                }
                Settled::Ended => return Ok(false),
            }
            if self.shared.partition.control.is_stopped() {
                return Ok(false);
            }
        }
        Ok(true)
    }

    fn halve(
        &self,
        mut keys: Vec<KeyValue>,
        error: &anyhow::Error,
        spans: &mut Vec<Vec<KeyValue>>,
    ) -> Result<(), Stop> {
        if keys.len() > 1 {
            let right = keys.split_off(keys.len() / 2);
            spans.extend([right, keys]);
            return Ok(());
        }
        match keys.pop() {
            Some(key) => self.failed(key, format!("{error:#}")),
            None => Ok(()),
        }
    }

    fn failed(&self, key: KeyValue, error: String) -> Result<(), Stop> {
        let Shared { tally, partition, .. } = self.shared;
        if tally.failed(key, error, partition.max_failures) {
            Ok(())
        } else {
            Err(Stop::Failures)
        }
    }

    /// Tries a batch until it is committed, or has failed by a fault of its own.
    fn settle(&mut self, part: usize, span: &Span, limit: usize) -> Result<Settled, Stop> {
        let shared = self.shared;
        let mut pause = FIRST_PAUSE;
        for tries in 1.. {
            let Some(conn) = self.session.connect(shared)? else {
                return Ok(Settled::Ended);
            };
            let trouble = match attempt(shared, conn, self.work, part, span, limit) {
                Ok(Batch::Busy) => return Ok(Settled::Busy),
                Ok(Batch::Done {
                    done,
                    found,
                    last,
                    failed,
                }) => {
                    if done > 0 {
                        shared.tally.committed(done);
                        shared.sweep.progressed(Some(part));
                    }
                    for (key, error) in failed {
                        self.failed(key, error)?;
                    }
                    return Ok(Settled::Done { found, last });
                }
                Err(trouble) => trouble,
            };
            let fault = trouble.fault::<Db<M>>();
            let is_broken = matches!(trouble, Trouble::Work { broken: true, .. });
            if is_broken || fault == Fault::Disconnected {
                self.session.discard();
            }
            match trouble {
                Trouble::Fatal(error) => return Err(Stop::Error(error)),
                Trouble::Statement(error) if fault == Fault::Other || tries > ATTEMPTS => {
                    return Err(Stop::Error(error.into()));
                }
                Trouble::Work { keys, error, .. } if fault == Fault::Other || tries > ATTEMPTS => {
                    return Ok(Settled::Failed(keys, error));
                }
                Trouble::Statement(error) => log::warn!("gatun partition: {error}; trying again"),
                Trouble::Work { error, .. } => log::warn!("gatun partition: {error:#}; trying again"),
            }
            shared.tally.retried();
            if !shared.partition.control.sleep(jittered(pause)) || shared.sweep.end().is_some() {
                break;
            }
            pause = (pause * 2).min(LONGEST_PAUSE);
        }
        Ok(Settled::Ended)
    }

    /// Looks over the whole table, and gives the partitions that have rows pending which did not fail.
    fn look(&mut self) -> Result<Vec<usize>, Stop> {
        let shared = self.shared;
        let mut tries = 0;
        let found = loop {
            let limit = shared.tally.failures_count() + STRAYS;
            let Some(conn) = self.session.connect(shared)? else {
                return Ok(vec![0]);
            };
            let error = match conn.transaction(|conn| Db::<M>::numbered(conn, shared.plan.look(limit))) {
                Ok(found) => break found,
                Err(error) => error,
            };
            tries += 1;
            match Db::<M>::fault(&error) {
                Fault::Other => return Err(Stop::Error(error.into())),
                _ if tries > ATTEMPTS => return Err(Stop::Error(error.into())),
                Fault::Disconnected => self.session.discard(),
                Fault::Contended => {}
            }
            shared.tally.retried();
            log::warn!("gatun partition: {error}; trying again");
            if !shared.partition.control.sleep(jittered(FIRST_PAUSE * 4)) {
                return Ok(vec![0]);
            }
        };
        let mut strays = Vec::new();
        for row in found {
            let key = shared.plan.table.parse(&row.key).map_err(Stop::Error)?;
            if !shared.tally.has_failed(&key) {
                strays.push(usize::try_from(row.number).map_err(|_| {
                    Stop::Error(PartitionError::WrongKey {
                        expected: shared.plan.table.kind,
                        found: row.key.clone(),
                    })
                })?);
            }
        }
        strays.sort_unstable();
        strays.dedup();
        Ok(strays)
    }
}
