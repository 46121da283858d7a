//! A run: what is prepared for it, what its threads share, and its report.

use crate::ebb::Ebb;
use crate::plan::Plan;
use crate::progress::Reporter;
use crate::sweep::{End, Sweep};
use crate::table::{Slices, Table};
use crate::tally::Tally;
use crate::{
    Cover, Failures, Outcome, Partition, PartitionBackend, PartitionConnection, PartitionError, Report,
    bounds, hand, scan, session,
};
use diesel::connection::Connection;
use diesel::deserialize::QueryableByName;
use diesel::r2d2::ManageConnection;
use job_db::{Database, DbConnection, MigrateError};
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

/// Binds of one statement are limited, on SQLite to 32,766.
const LARGEST_BATCH: usize = 30_000;

/// How long a thread lets pass before it looks whether the run has ended by another.
pub(crate) const GLANCE: Duration = Duration::from_millis(50);

pub(crate) type Conn<M> = <M as ManageConnection>::Connection;
pub(crate) type Db<M> = <Conn<M> as DbConnection>::Db;

impl Partition {
    /// Works until nothing is pending, and gives a report. The closure gets the rows of a batch, locked, and the connection,
    /// in the transaction that is committed when it gives `Ok`. Where it fails or panics, the batch is rolled back and
    /// halved, until the row is found that it fails on.
    ///
    /// # Errors
    /// A [`PartitionError`], where the run ended before its outcome was known.
    pub fn run<M, T, F>(&self, manager: &M, work: F) -> Result<Report, PartitionError>
    where
        M: ManageConnection,
        M::Connection: PartitionConnection,
        T: QueryableByName<Db<M>> + 'static,
        F: Fn(&[T], &mut M::Connection) -> anyhow::Result<()> + Sync,
    {
        self.check()?;
        let start = Instant::now();
        let mut conn = session::open(manager, self.cache).map_err(PartitionError::Connect)?;
        // In a transaction, as all statements are: behind a proxy the next one may be in another session.
        conn.transaction(Db::<M>::check_server)
            .map_err(|error| match error {
                MigrateError::Database(error) => PartitionError::Database(error),
                error => PartitionError::ServerTooOld(error),
            })?;
        let plan = self.plan::<Conn<M>>(&mut conn)?;
        let shared = Shared {
            partition: self,
            manager,
            sweep: Sweep::new(plan.slices.count(), self.patience, Db::<M>::ONE_LOCK),
            plan,
            tally: Tally::default(),
            ebb: Ebb::default(),
        };
        let error = hand::all(&shared, conn, &work).err();
        let report = shared.report(start);
        match error {
            Some(Stop::Failures) => Err(PartitionError::TooManyFailures(Box::new(report))),
            Some(Stop::Error(error)) => Err(error),
            None => {
                log::info!("gatun partition: {report}");
                Ok(report)
            }
        }
    }

    fn check(&self) -> Result<(), PartitionError> {
        let (smallest, largest) = self.batch_bounds;
        let sizes = [self.batch, smallest, largest];
        let wrong = [
            (
                self.pending.trim().is_empty(),
                "pending() must say what rows are not done yet",
            ),
            (
                self.partitions == 0,
                "there must be a partition: partitions(0) cannot be",
            ),
            (self.threads == 0, "there must be a thread: threads(0) cannot be"),
            (
                smallest > largest || sizes.iter().any(|rows| !(1..=LARGEST_BATCH).contains(rows)),
                "a batch has 1 to 30000 rows",
            ),
            (
                matches!(self.max_failures, Failures::Share(share) if !(0.0..=1.0).contains(&share)),
                "the share of failures is a number from 0 to 1",
            ),
            (
                self.table.split('.').count() > 2
                    || self.table.split('.').any(str::is_empty)
                    || self.table.contains('\0'),
                "the table's name is one name, or two with a point between",
            ),
        ];
        match wrong.into_iter().find(|(is_wrong, _)| *is_wrong) {
            Some((_, message)) => Err(PartitionError::Invalid(message)),
            None => Ok(()),
        }
    }

    fn plan<C: PartitionConnection>(&self, conn: &mut C) -> Result<Plan<C::Db>, PartitionError> {
        let parts: Vec<&str> = self.table.split('.').collect();
        let (key, _) = &self.key;
        for (option, sql) in [("pending", &self.pending), ("columns", &self.columns)] {
            if let Some(flaw) = scan::flaw(&C::Db::LEXIS, sql) {
                let sql = sql.clone();
                return Err(PartitionError::InvalidSql { option, sql, flaw });
            }
        }
        let described = conn.transaction(|conn| C::Db::describe(conn, &parts, key))?;
        let described = described.ok_or_else(|| PartitionError::UnknownTable(self.table.clone()))?;
        let table = Table::of::<C::Db>(self, described)?;
        let slices = match self.cover {
            Cover::Modulo => {
                bounds::ends(conn, &table)?;
                Slices::Modulo(self.partitions)
            }
            Cover::Range => Slices::Range(bounds::find(conn, &table, self.partitions.into())?),
        };
        let name = self.name.as_deref().unwrap_or(&self.pending);
        // A statement that is kept must give the same columns for ever.
        let is_steady = self.target.is_none() && !self.columns.contains('*');
        let plan = Plan::new(table, slices, name, is_steady);
        let without_key = C::Db::read(conn, |conn| C::Db::numbered(conn, plan.null_key()))?;
        match without_key.is_empty() {
            true => Ok(plan),
            false => Err(PartitionError::NullKey {
                table: self.table.clone(),
                key: key.clone(),
            }),
        }
    }
}

/// Why a run ends before its outcome is known.
#[derive(Debug)]
pub(crate) enum Stop {
    Failures,
    Error(PartitionError),
}

/// What the threads of a run share.
pub(crate) struct Shared<'a, M: ManageConnection>
where
    M::Connection: PartitionConnection,
{
    pub(crate) partition: &'a Partition,
    pub(crate) manager: &'a M,
    pub(crate) plan: Plan<Db<M>>,
    pub(crate) sweep: Sweep,
    pub(crate) tally: Tally,
    pub(crate) ebb: Ebb,
}

impl<M: ManageConnection> Shared<'_, M>
where
    M::Connection: PartitionConnection,
{
    /// Lets time pass; `false` means that the run ends, by the caller's wish or by what another thread has met.
    pub(crate) fn sleep(&self, time: Duration) -> bool {
        let start = Instant::now();
        while self.sweep.end().is_none() {
            let left = time.saturating_sub(start.elapsed());
            if left.is_zero() {
                return !self.partition.control.is_stopped();
            }
            if !self.partition.control.sleep(left.min(GLANCE)) {
                return false;
            }
        }
        false
    }

    fn report(&self, start: Instant) -> Report {
        let failures = self.tally.failed_rows();
        let rows = self.tally.rows();
        let outcome = match self.sweep.end() {
            Some(End::Complete) if failures.is_empty() => Outcome::Complete { rows },
            Some(End::Complete) => Outcome::Incomplete {
                busy: 0,
                failed: failures.len(),
            },
            Some(End::Busy(busy)) => Outcome::Incomplete {
                busy,
                failed: failures.len(),
            },
            Some(End::Other) | None => Outcome::Stopped,
        };
        Report {
            table: self.partition.table.clone(),
            outcome,
            rows,
            failures,
            partitions: self.plan.slices.count(),
            batches: self.tally.batches.load(Ordering::Relaxed),
            retries: self.tally.retries.load(Ordering::Relaxed),
            elapsed: start.elapsed(),
        }
    }

    pub(crate) fn progress(&self) -> Reporter<'_, M> {
        Reporter::new(self)
    }
}
