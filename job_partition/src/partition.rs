use crate::plan::{Plan, Slices, Table};
use crate::progress::{self, Progress};
use crate::sweep::{End, Sweep};
use crate::tally::Tally;
use crate::{
    Control, Cover, Failures, Key, Outcome, PartitionBackend, PartitionConnection, PartitionError, Pause,
    Report, bounds, hand, session,
};
use diesel::connection::{CacheSize, Connection};
use diesel::deserialize::QueryableByName;
use diesel::r2d2::ManageConnection;
use job_db::{Database, MigrateError};
use std::fmt;
use std::ops::RangeInclusive;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

/// Binds of one statement are limited, on SQLite to 32,766.
const LARGEST_BATCH: usize = 30_000;

pub(crate) type Conn<M> = <M as ManageConnection>::Connection;
pub(crate) type Db<M> = <Conn<M> as PartitionConnection>::Db;

type Throttle = Box<dyn Fn() -> Option<Pause> + Send + Sync>;
type OnProgress = Box<dyn Fn(&Progress) + Send + Sync>;

/// All rows of a table that meet a condition, worked through in batches by as many threads and processes as there are.
/// See [the crate](crate) for what is guaranteed.
#[must_use = "nothing is done before run()"]
pub struct Partition {
    pub(crate) table: String,
    pub(crate) key: (String, Key),
    pub(crate) pending: String,
    pub(crate) columns: String,
    pub(crate) name: Option<String>,
    pub(crate) cover: Cover,
    pub(crate) partitions: u16,
    pub(crate) batch: usize,
    pub(crate) target: Option<Duration>,
    pub(crate) batch_bounds: (usize, usize),
    pub(crate) threads: usize,
    pub(crate) max_failures: Failures,
    pub(crate) patience: Duration,
    pub(crate) control: Control,
    pub(crate) cache: CacheSize,
    pub(crate) throttle: Option<Throttle>,
    pub(crate) on_progress: Option<OnProgress>,
    pub(crate) bar: bool,
}

impl Partition {
    /// The rows of a table, which may stand in a schema: `accounts` or `sales.accounts`. The name is quoted, so that upper and
    /// lower case are as they are.
    pub fn of(table: impl Into<String>) -> Self {
        Partition {
            table: table.into(),
            key: ("id".into(), Key::Integer),
            pending: String::new(),
            columns: "*".into(),
            name: None,
            cover: Cover::default(),
            partitions: 64,
            batch: 500,
            target: None,
            batch_bounds: (1, 10_000),
            threads: 1,
            max_failures: Failures::Count(100),
            patience: Duration::from_secs(60),
            control: Control::new(),
            cache: CacheSize::Unbounded,
            throttle: None,
            on_progress: None,
            bar: false,
        }
    }

    /// The key's column and kind; `id`, an integer, if not said. It must be unique and not null, and have an index.
    pub fn key(mut self, column: impl Into<String>, kind: Key) -> Self {
        self.key = (column.into(), kind);
        self
    }

    /// The SQL condition that a row meets until it is done. That a row is done stands in the row itself: the closure must
    /// change it so that this is no longer true. It is pasted into the statements as it is: never make it of what a
    /// stranger has typed.
    pub fn pending(mut self, condition: impl Into<String>) -> Self {
        self.pending = condition.into();
        self
    }

    /// The SQL of what the closure gets of each row, by the names of the fields of its struct; all columns, if not said.
    pub fn columns(mut self, columns: impl Into<String>) -> Self {
        self.columns = columns.into();
        self
    }

    /// Workers share partitions where table, key, cover, number of partitions and this name are the same; the condition, if
    /// not said. Rows are safe in any case: only a worker with other partitions is kept away from each row rather than
    /// from a whole partition.
    pub fn name(mut self, name: impl Into<String>) -> Self {
        self.name = Some(name.into());
        self
    }

    /// How rows are shared out; by ranges, if not said.
    pub fn cover(mut self, cover: Cover) -> Self {
        self.cover = cover;
        self
    }

    /// How many partitions, 64 if not said: many more than workers, so that all have work until the end. Ranges are at most
    /// this many.
    pub fn partitions(mut self, count: u16) -> Self {
        self.partitions = count;
        self
    }

    /// How many rows a transaction has, 500 if not said.
    pub fn batch(mut self, rows: usize) -> Self {
        self.batch = rows;
        self
    }

    /// Lets the size of batches grow and shrink, so that each takes about this time. Without it they stay as they are.
    pub fn target(mut self, time: Duration) -> Self {
        self.target = Some(time);
        self
    }

    /// The smallest and the largest batch that [`target`](Self::target) may lead to; 1 to 10,000, if not said.
    pub fn batch_bounds(mut self, rows: RangeInclusive<usize>) -> Self {
        self.batch_bounds = rows.into_inner();
        self
    }

    /// How many threads of this process, each with a connection; one, if not said.
    pub fn threads(mut self, count: usize) -> Self {
        self.threads = count;
        self
    }

    /// How many rows may fail before the run ends with [`PartitionError::TooManyFailures`]; 100, if not said.
    pub fn max_failures(mut self, limit: Failures) -> Self {
        self.max_failures = limit;
        self
    }

    /// How long to wait without any progress for partitions that others hold, or for a server that is away; a minute, if not
    /// said.
    pub fn patience(mut self, time: Duration) -> Self {
        self.patience = time;
        self
    }

    /// Is asked before each batch; while it gives a [`Pause`], no batch is started.
    pub fn throttle(mut self, throttle: impl Fn() -> Option<Pause> + Send + Sync + 'static) -> Self {
        self.throttle = Some(Box::new(throttle));
        self
    }

    /// Pauses and stops the run from elsewhere.
    pub fn control(mut self, control: &Control) -> Self {
        self.control = control.clone();
        self
    }

    /// Whether Diesel may keep prepared statements on the connections; it may, if not said. [`CacheSize::Disabled`] is for a
    /// proxy that gives each transaction another session, as PgBouncer does in its transaction mode. It is the one thing to say
    /// there: nothing else stays with a session, and a kept statement that is missed is an error, never a wrong result.
    pub fn statement_cache(mut self, size: CacheSize) -> Self {
        self.cache = size;
        self
    }

    /// Is called about once a second, and at the end. What is left is counted with a connection of its own, seldom enough to
    /// cost little.
    pub fn on_progress(mut self, show: impl Fn(&Progress) + Send + Sync + 'static) -> Self {
        self.on_progress = Some(Box::new(show));
        self
    }

    /// Shows a bar, if the standard error is a terminal. (Elsewhere, and without this, a line is logged every ten seconds.)
    #[cfg(feature = "progress")]
    pub fn bar(mut self) -> Self {
        self.bar = true;
        self
    }

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
        conn.transaction(|conn| Db::<M>::check_server(conn))
            .map_err(|error| match error {
                MigrateError::Database(error) => PartitionError::Database(error),
                error => PartitionError::ServerTooOld(error),
            })?;
        let plan = self.plan::<Conn<M>>(&mut conn)?;
        let job = Shared {
            partition: self,
            manager,
            sweep: Sweep::new(plan.slices.count(), self.patience, Db::<M>::ONE_LOCK),
            plan,
            tally: Tally::default(),
        };
        let error = hand::all(&job, conn, &work).err();
        let report = job.report(start);
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
        let (key, kind) = &self.key;
        let described = conn.transaction(|conn| C::Db::describe(conn, &parts, key))?;
        let described = described.ok_or_else(|| PartitionError::UnknownTable(self.table.clone()))?;
        let key_type = described.key_type.ok_or_else(|| PartitionError::UnknownKey {
            table: self.table.clone(),
            key: key.clone(),
        })?;
        let name = parts
            .into_iter()
            .map(quoted::<C::Db>)
            .collect::<Vec<_>>()
            .join(".");
        let bare_key = quoted::<C::Db>(key);
        let table = Table {
            key: format!("{name}.{bare_key}"),
            name,
            identity: described.identity,
            bare_key,
            kind: *kind,
            key_type,
            pending: self.pending.clone(),
            columns: self.columns.clone(),
        };
        let slices = match self.cover {
            Cover::Modulo => Slices::Modulo(self.partitions),
            Cover::Range => Slices::Range(bounds::find(conn, &table, self.partitions.into())?),
        };
        let name = self.name.as_deref().unwrap_or(&self.pending);
        // A statement that is kept must give the same columns for ever.
        let is_steady = self.target.is_none() && !self.columns.contains('*');
        Ok(Plan::new(table, slices, name, is_steady))
    }
}

fn quoted<DB: PartitionBackend>(name: &str) -> String {
    let quote = DB::QUOTE;
    format!(
        "{quote}{}{quote}",
        name.replace(quote, &format!("{quote}{quote}"))
    )
}

impl fmt::Debug for Partition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Partition")
            .field("table", &self.table)
            .field("key", &self.key)
            .field("pending", &self.pending)
            .field("cover", &self.cover)
            .field("partitions", &self.partitions)
            .finish_non_exhaustive()
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
}

impl<M: ManageConnection> Shared<'_, M>
where
    M::Connection: PartitionConnection,
{
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

    pub(crate) fn progress(&self) -> progress::Reporter<'_, M> {
        progress::Reporter::new(self)
    }
}
