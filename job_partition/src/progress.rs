use crate::run::{Conn, Db, Shared};
use crate::work::message;
use crate::{PartitionBackend, PartitionConnection, session};
use diesel::r2d2::ManageConnection;
use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread::Scope;
use std::time::{Duration, Instant};

const SHOW_EVERY: Duration = Duration::from_secs(1);
const LOG_EVERY: Duration = Duration::from_secs(10);

/// A count may read the whole table: it has this share of the time.
const COUNTING: u32 = 50;

/// How far a run has come.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Progress {
    /// The rows that this run has done.
    pub rows: u64,
    /// The rows that failed.
    pub failed: usize,
    /// How many rows were pending when they were last counted, whoever does them.
    pub remaining: Option<u64>,
    /// How many partitions this run has seen drained.
    pub drained: usize,
    /// The number of partitions.
    pub partitions: usize,
    /// Rows per second, by this run alone.
    pub rate: f64,
    /// How much longer it takes at the pace of all workers together.
    pub eta: Option<Duration>,
    /// Why no batches are started just now.
    pub throttled: Option<String>,
    /// How long it has taken.
    pub elapsed: Duration,
}

impl fmt::Display for Progress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} rows done, {:.0}/s", self.rows, self.rate)?;
        if let Some(remaining) = self.remaining {
            write!(f, ", {remaining} left")?;
        }
        if let Some(eta) = self.eta {
            write!(f, ", {} s to go", eta.as_secs())?;
        }
        if self.failed > 0 {
            write!(f, ", {} failed", self.failed)?;
        }
        match &self.throttled {
            Some(reason) => write!(f, ", throttled: {reason}"),
            None => Ok(()),
        }
    }
}

/// Counts what is left now and then, on a connection of its own.
struct Counter<C> {
    conn: Option<C>,
    counts: Option<[(Instant, u64); 2]>,
    next: Instant,
}

/// A thread that shows how far the run has come, if anybody wants to know.
pub(crate) struct Reporter<'a, M: ManageConnection>
where
    M::Connection: PartitionConnection,
{
    shared: &'a Shared<'a, M>,
    start: Instant,
    counter: Counter<Conn<M>>,
}

impl<'a, M: ManageConnection> Reporter<'a, M>
where
    M::Connection: PartitionConnection,
{
    pub(crate) fn new(shared: &'a Shared<'a, M>) -> Self {
        let start = Instant::now();
        Reporter {
            shared,
            start,
            counter: Counter {
                conn: None,
                counts: None,
                next: start,
            },
        }
    }

    /// Goes on until the sender is dropped. Without an audience there is no thread.
    pub(crate) fn start<'s>(self, scope: &'s Scope<'s, '_>) -> std::io::Result<Option<Sender<()>>>
    where
        'a: 's,
    {
        let options = self.shared.partition;
        if options.on_progress.is_none() && !options.bar && !log::log_enabled!(log::Level::Info) {
            return Ok(None);
        }
        let (sender, receiver) = channel();
        std::thread::Builder::new()
            .name("gatun-partition-progress".into())
            .spawn_scoped(scope, move || self.show_until(&receiver))?;
        Ok(Some(sender))
    }

    fn show_until(mut self, ended: &Receiver<()>) {
        let bar = self.shared.partition.bar.then(crate::bar::Bar::new).flatten();
        let mut next_line = self.start + LOG_EVERY;
        let mut is_deaf = false;
        loop {
            let is_over = ended.recv_timeout(SHOW_EVERY) == Err(RecvTimeoutError::Disconnected);
            let progress = self.progress(is_over);
            if let Some(show) = self.shared.partition.on_progress.as_ref().filter(|_| !is_deaf) {
                // The run and its report are worth more than what somebody does with its progress.
                is_deaf = catch_unwind(AssertUnwindSafe(|| show(&progress)))
                    .inspect_err(|panic| {
                        let panic = message(panic.as_ref());
                        log::error!("gatun partition: on_progress panicked, and is called no more: {panic}");
                    })
                    .is_err();
            }
            if let Some(bar) = &bar {
                bar.show(&progress);
            } else if Instant::now() >= next_line {
                next_line += LOG_EVERY;
                log::info!("gatun partition {}: {progress}", self.shared.partition.table);
            }
            if is_over {
                break;
            }
        }
    }

    fn progress(&mut self, is_over: bool) -> Progress {
        let Shared {
            tally, sweep, plan, ..
        } = self.shared;
        if !is_over && Instant::now() >= self.counter.next {
            self.count();
        }
        let (rows, elapsed) = (tally.rows(), self.start.elapsed());
        let rate = rows as f64 / elapsed.as_secs_f64().max(1e-9);
        Progress {
            rows,
            failed: tally.failures_count(),
            remaining: self.counter.counts.map(|[_, (_, rows)]| rows),
            drained: sweep.drained(),
            partitions: plan.slices.count(),
            rate,
            eta: self
                .counter
                .counts
                .and_then(|counts| eta(counts, rate, Instant::now())),
            throttled: tally.throttled(),
            elapsed,
        }
    }

    /// Nothing depends on it, so that an error means only that the count is not known.
    fn count(&mut self) {
        let began = Instant::now();
        if self.counter.conn.is_none() {
            self.counter.conn = session::open(self.shared.manager, self.shared.partition.cache).ok();
        }
        let counted = self
            .counter
            .conn
            .as_mut()
            .map(|conn| Db::<M>::read(conn, |conn| Db::<M>::numbered(conn, self.shared.plan.count())));
        match counted {
            Some(Ok(rows)) => {
                let rows = rows
                    .first()
                    .map_or(0, |row| u64::try_from(row.number).unwrap_or(0));
                let first = self.counter.counts.map_or((began, rows), |[first, _]| first);
                self.counter.counts = Some([first, (began, rows)]);
            }
            _ => self.counter.conn = None,
        }
        self.counter.next = Instant::now() + (began.elapsed() * COUNTING).max(SHOW_EVERY);
    }
}

/// From how many rows went between two counts; before the second, from this run's own rate.
fn eta([(began, first), (at, last)]: [(Instant, u64); 2], own_rate: f64, now: Instant) -> Option<Duration> {
    let gone = first.saturating_sub(last) as f64;
    let rate = if gone > 0.0 {
        gone / (at - began).as_secs_f64()
    } else {
        own_rate
    };
    let left = Duration::try_from_secs_f64(last as f64 / rate).ok()?;
    Some(left.saturating_sub(now - at))
}

#[cfg(test)]
mod tests {
    use super::eta;
    use std::time::{Duration, Instant};

    #[test]
    fn the_time_to_go_follows_the_pace_of_all_workers() {
        let began = Instant::now();
        let seconds = |seconds| began + Duration::from_secs(seconds);
        let counts = [(began, 1000), (seconds(100), 500)];
        assert_eq!(eta(counts, 1.0, seconds(100)), Some(Duration::from_secs(100)));
        assert_eq!(eta(counts, 1.0, seconds(130)), Some(Duration::from_secs(70)));
        let once = [(began, 1000), (began, 1000)];
        assert_eq!(
            eta(once, 10.0, began),
            Some(Duration::from_secs(100)),
            "at this run's pace"
        );
        assert_eq!(eta(once, 0.0, began), None, "nobody knows yet");
    }
}
