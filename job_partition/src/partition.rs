use crate::{Control, Cover, Failures, Key, Pause, Progress};
use diesel::connection::CacheSize;
use std::fmt;
use std::ops::RangeInclusive;
use std::time::Duration;

type Throttle = Box<dyn Fn() -> Option<Pause> + Send + Sync>;
type OnProgress = Box<dyn Fn(&Progress) + Send + Sync>;

/// All rows of a table that meet a condition, worked through in batches by as many threads and processes as there are.
/// See [the crate](crate) for what is guaranteed.
///
/// ```
/// # #[cfg(feature = "sqlite")]
/// # fn main() -> anyhow::Result<()> {
/// # use diesel::connection::SimpleConnection;
/// # use diesel::prelude::*;
/// # use diesel::r2d2::ConnectionManager;
/// # let folder = std::env::temp_dir().join(format!("gatun-partition-options-{}", std::process::id()));
/// # std::fs::create_dir_all(&folder)?;
/// # let url = folder.join("app.sqlite3").to_str().unwrap().to_owned();
/// # SqliteConnection::establish(&url)?.batch_execute(
/// #     "CREATE TABLE pages (url TEXT PRIMARY KEY, words INT); INSERT INTO pages VALUES ('/', NULL), ('/about', NULL)")?;
/// # #[derive(QueryableByName)]
/// # struct Page { #[diesel(sql_type = diesel::sql_types::Text)] url: String }
/// # fn replica_lag() -> Duration { Duration::ZERO }
/// use job_partition::{Control, Failures, Key, Partition, Pause};
/// use std::time::Duration;
///
/// let control = Control::new(); // for a thread that waits for signals: control.stop()
/// let report = Partition::of("pages")
///     .key("url", Key::Text)
///     .pending("words IS NULL")
///     .columns("url")
///     .threads(4)
///     .batch(100)
///     .target(Duration::from_millis(200))
///     .max_failures(Failures::Share(0.01))
///     .control(&control)
///     .throttle(|| {
///         let lag = replica_lag();
///         (lag > Duration::from_secs(5)).then(|| Pause::new(lag, format!("the replica is {lag:?} behind")))
///     })
///     .on_progress(|progress| println!("{progress}"))
///     .run(&ConnectionManager::new(&url), |batch: &[Page], conn: &mut SqliteConnection| {
///         for page in batch {
///             let words = page.url.len() as i32; // or what counting them takes
///             diesel::sql_query("UPDATE pages SET words = ? WHERE url = ?")
///                 .bind::<diesel::sql_types::Integer, _>(words)
///                 .bind::<diesel::sql_types::Text, _>(&page.url)
///                 .execute(conn)?;
///         }
///         Ok(())
///     })?;
/// assert!(report.is_complete(), "{report}");
/// # std::fs::remove_dir_all(&folder)?;
/// # Ok(())
/// # }
/// # #[cfg(not(feature = "sqlite"))]
/// # fn main() {}
/// ```
#[must_use = "nothing is done before run()"]
pub struct Partition {
    pub(crate) table: String,
    pub(crate) key: (String, Key),
    pub(crate) is_unique: bool,
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
            is_unique: false,
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

    /// The key's column and kind; `id`, an integer, if not said. It must be unique and not null, and have an index. A column
    /// that no primary key and no unique index of its own makes unique is refused,
    /// [`PartitionError::NotUnique`](crate::PartitionError::NotUnique).
    pub fn key(mut self, column: impl Into<String>, kind: Key) -> Self {
        self.key = (column.into(), kind);
        self
    }

    /// Says that the key is unique though no index of its column alone says so: in a view, in a table that is partitioned by
    /// another column, or among the pending rows where the primary key has more columns. If it is not, rows with equal keys
    /// are taken for one: some of them are marked without having been given to the closure, others fail.
    pub fn key_is_unique(mut self) -> Self {
        self.is_unique = true;
        self
    }

    /// The SQL condition that a row meets until it is done. That a row is done stands in the row itself: the closure must
    /// change it so that this is no longer true. It is pasted into the statements as it is: never make it of what a
    /// stranger has typed. It takes no binds: a placeholder in it is refused, unless it stands in quotes.
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
    /// this many. Each costs a look or two at the index to begin with, and a transaction that finds it drained.
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

    /// How many threads of this process, each with a connection; one, if not said. Those that get no connection leave, if others
    /// go on.
    pub fn threads(mut self, count: usize) -> Self {
        self.threads = count;
        self
    }

    /// How many rows may fail before the run ends with [`TooManyFailures`](crate::PartitionError::TooManyFailures); 100, if not said.
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

    /// Is asked before each batch, each half of one that failed, and each new try; while it gives a [`Pause`], no batch is started. Its panic is the run's.
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
    /// there: nothing else that matters stays with a session, and a kept statement that is missed is an error, never a wrong result.
    pub fn statement_cache(mut self, size: CacheSize) -> Self {
        self.cache = size;
        self
    }

    /// Is called about once a second, and at the end; no more after it has panicked, which is logged. What is left is counted now and then with one more connection, so seldom
    /// that it takes a fiftieth of the time; that is so for the bar and for the lines in the log as well.
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
