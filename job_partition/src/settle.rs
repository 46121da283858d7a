//! A batch until it is done: tried again where the database was in the way, halved where it fails by itself.

use crate::batch::{Batch, Left, Trouble, attempt};
use crate::hand::Hand;
use crate::parts::jittered;
use crate::run::{Db, Shared, Stop};
use crate::table::Span;
use crate::work::fault_of_work;
use crate::{KeyValue, PartitionBackend, PartitionConnection, PartitionError};
use diesel::deserialize::QueryableByName;
use diesel::r2d2::ManageConnection;
use job_db::Fault;
use std::collections::HashSet;
use std::time::Duration;

/// How often a batch is tried again that the database refuses for no fault of its own. After that it may be one: a row that is
/// too much for the server looks the same.
pub(crate) const ATTEMPTS: u32 = 8;
pub(crate) const FIRST_PAUSE: Duration = Duration::from_millis(5);
/// How often a half of such a batch is tried again, before it is halved: what refused the whole so often is likely to refuse one of
/// the halves as well, and each row that is alone at last has all attempts.
const ATTEMPTS_OF_HALF: u32 = 2;
/// How often a half is tried whose partition somebody else has.
const REFUSALS: u32 = 50;
const LONGEST_PAUSE: Duration = Duration::from_secs(1);

/// What came of a batch after all attempts.
pub(crate) enum Settled {
    Done { found: usize, last: Option<KeyValue> },
    Busy,
    Failed(Vec<KeyValue>, anyhow::Error),
    Ended,
}

/// A part of a batch that has failed, and how often it is to be tried.
struct Half {
    keys: Vec<KeyValue>,
    attempts: u32,
}

impl<M, T, F> Hand<'_, M, T, F>
where
    M: ManageConnection,
    M::Connection: PartitionConnection,
    T: QueryableByName<Db<M>> + 'static,
    F: Fn(&[T], &mut M::Connection) -> anyhow::Result<()>,
{
    /// Halves a batch that has failed until each row that fails is alone; every half has a transaction of its own. `false`:
    /// it was given up before.
    pub(crate) fn bisect(
        &mut self,
        part: usize,
        keys: Vec<KeyValue>,
        error: anyhow::Error,
    ) -> Result<bool, Stop> {
        log::warn!(
            "gatun partition: a batch of {} rows failed, and is halved: {error:#}",
            keys.len()
        );
        let (mut spans, mut refusals) = (Vec::new(), 0);
        self.halve(keys, &error, &mut spans)?;
        while let Some(half) = spans.pop() {
            let Half { keys, attempts } = &half;
            let [first, ..] = keys.as_slice() else { continue };
            if !self.may_start() {
                return Ok(false);
            }
            let span = Span::Between(first.clone(), keys[keys.len() - 1].clone());
            match self.settle(part, &span, keys.len(), *attempts)? {
                Settled::Done { .. } => {}
                Settled::Failed(keys, error) => self.halve(keys, &error, &mut spans)?,
                // Whoever has the partition now comes to the same rows. If that takes long, it is a busy partition like
                // any other.
                Settled::Busy => {
                    spans.push(half);
                    refusals += 1;
                    if !self.shared.sleep(jittered(FIRST_PAUSE * 4)) || refusals > REFUSALS {
                        return Ok(false);
                    }
                }
                Settled::Ended => return Ok(false),
            }
        }
        Ok(true)
    }

    fn halve(
        &self,
        mut keys: Vec<KeyValue>,
        error: &anyhow::Error,
        spans: &mut Vec<Half>,
    ) -> Result<(), Stop> {
        if keys.len() > 1 {
            let was_refused = fault_of_work::<Db<M>>(error) != Fault::Other;
            let right = keys.split_off(keys.len() / 2);
            spans.extend([right, keys].map(|keys| Half {
                attempts: if was_refused && keys.len() > 1 {
                    ATTEMPTS_OF_HALF
                } else {
                    ATTEMPTS
                },
                keys,
            }));
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

    /// A closure that changes the key, and marks nothing, would have no end.
    fn see_that_rows_get_fewer(&mut self, done: usize) -> Result<(), Stop> {
        let shared = self.shared;
        if !shared.ebb.wants_count(done) {
            return Ok(());
        }
        let Some(counts) = self.read(|| shared.plan.count())? else {
            return Ok(());
        };
        let pending = counts
            .first()
            .map_or(0, |count| u64::try_from(count.number).unwrap_or(0));
        if shared.ebb.counted(pending) {
            return Ok(());
        }
        Err(Stop::Error(PartitionError::NoEnd {
            rows: shared.tally.rows(),
            pending,
            key: shared.partition.key.0.clone(),
        }))
    }

    /// Of rows whose transaction was over too soon, those that are pending as before. The others are done or gone, which is
    /// nothing that can be taken back: they fail at once, so that somebody looks at them. `None` where the run ends meanwhile.
    fn without_committed(
        &mut self,
        keys: Vec<KeyValue>,
        error: &anyhow::Error,
    ) -> Result<Option<Vec<KeyValue>>, Stop> {
        let plan = &self.shared.plan;
        let Some(found) = self.read(|| plan.still_pending(&keys))? else {
            return Ok(None);
        };
        let mut pending = HashSet::new();
        for row in found {
            pending.insert(plan.table.parse(&row.key).map_err(Stop::Error)?);
        }
        let (pending, committed): (Vec<_>, Vec<_>) = keys.into_iter().partition(|key| pending.contains(key));
        for key in committed {
            self.failed(
                key,
                format!("the row is pending no more, committed outside of a batch's transaction: {error:#}"),
            )?;
        }
        Ok(Some(pending))
    }

    /// Tries a batch until it is committed, or has failed by a fault of its own.
    pub(crate) fn settle(
        &mut self,
        part: usize,
        span: &Span,
        limit: usize,
        attempts: u32,
    ) -> Result<Settled, Stop> {
        let shared = self.shared;
        let lock = shared.plan.lock(part);
        let mut pause = FIRST_PAUSE;
        for tries in 1.. {
            // Who must wait for a connection waits without a partition, which others may go on with.
            let Some(conn) = self.session.connect_at_once(shared) else {
                return Ok(Settled::Ended);
            };
            let attempted = attempt(shared, conn, self.work, &lock, span, limit);
            // A lock that cannot be freed is freed with its session.
            if !matches!(attempted, Ok(Batch::Busy)) && Db::<M>::release(conn, &lock).is_err() {
                self.session.discard();
            }
            let trouble = match attempted {
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
                        self.see_that_rows_get_fewer(done)?;
                    }
                    for (key, error) in failed {
                        self.failed(key, error)?;
                    }
                    return Ok(Settled::Done { found, last });
                }
                Err(trouble) => trouble,
            };
            let fault = trouble.fault::<Db<M>>();
            let must_discard = matches!(trouble, Trouble::Work { left, .. } if left != Left::Nothing);
            if must_discard || fault == Fault::Disconnected {
                self.session.discard();
            }
            match trouble {
                Trouble::Fatal(error) => return Err(Stop::Error(error)),
                Trouble::Work {
                    keys,
                    error,
                    left: Left::Writes,
                } => {
                    let keys = self.without_committed(keys, &error)?;
                    return Ok(keys.map_or(Settled::Ended, |keys| Settled::Failed(keys, error)));
                }
                // Somebody has locked the table, say, and the session's own limit on waiting is short: as busy as a partition
                // that somebody else has, and patience decides.
                Trouble::Statement(error) if fault == Fault::Contended && tries > ATTEMPTS => {
                    log::warn!("gatun partition: {error}; leaving the partition for a while");
                    return Ok(Settled::Busy);
                }
                Trouble::Statement(error) if fault == Fault::Other || tries > ATTEMPTS => {
                    return Err(Stop::Error(error.into()));
                }
                Trouble::Work { keys, error, .. } if fault == Fault::Other || tries > attempts => {
                    return Ok(Settled::Failed(keys, error));
                }
                Trouble::Statement(error) => log::warn!("gatun partition: {error}; trying again"),
                Trouble::Work { error, .. } => log::warn!("gatun partition: {error:#}; trying again"),
            }
            shared.tally.retried();
            if !shared.sleep(jittered(pause)) || !self.may_start() {
                break;
            }
            pause = (pause * 2).min(LONGEST_PAUSE);
        }
        Ok(Settled::Ended)
    }
}
