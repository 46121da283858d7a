use crate::scan::Lexis;
use crate::sql::{Keyed, Numbered, Part, Sql};
use crate::{Key, KeyValue};
use diesel::connection::LoadConnection;
use diesel::deserialize::QueryableByName;
use diesel::result::{Error, QueryResult};
use job_db::{Database, DbConnection};

/// The lock of one partition.
#[derive(Debug)]
#[allow(dead_code)] // Each database reads what its lock is made of.
pub struct Lock {
    /// The hash, of 48 bits, of all that the workers on the same partitions have in common.
    pub(crate) namespace: u64,
    /// Which partition.
    pub(crate) number: u16,
    /// The table's name in quotes, and its key's.
    pub(crate) table: String,
    pub(crate) key: String,
}

/// A savepoint that is set before the rows are read goes with the transaction, even where another was begun at once. (On
/// PostgreSQL it must not stand between the lock of a row and its change, which would make a multixact of the two.)
pub(crate) const SET: &str = "SAVEPOINT gatun_batch";
const RELEASE: &str = "RELEASE SAVEPOINT gatun_batch";
pub(crate) const ROLL_BACK: &str = "ROLLBACK TO SAVEPOINT gatun_batch";

/// What came of reaching for a lock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Take {
    /// A transaction is open that holds it.
    Taken,
    /// Somebody else has it; no transaction is open.
    Busy,
}

/// What the database knows of a table.
#[derive(Debug)]
pub struct Described {
    /// Tells the table from those of the same name elsewhere in what the locks are shared with.
    pub(crate) identity: String,
    /// The key column's type; `None` where there is no such column.
    pub(crate) key_type: Option<String>,
    /// Whether an index of the key column alone, over all rows, makes it unique.
    pub(crate) is_unique: bool,
    /// Whether a SELECT that is to lock rows locks none there, and says nothing.
    pub(crate) locks_nothing: bool,
}

/// What partitions need of a database, implemented for Diesel's `Pg`, `Mysql` and `Sqlite`. It is sealed by [`Database`],
/// and none of its methods is for users.
#[diagnostic::on_unimplemented(
    message = "this build of job_partition does not know `{Self}`",
    note = "enable job_partition's feature `sqlite`, `postgres` or `mysql`, whichever the connection is of"
)]
pub trait PartitionBackend: Database {
    /// The name in CAST of an integer of 64 bits.
    #[doc(hidden)]
    const BIGINT: &'static str;

    /// What locks the rows of a SELECT and passes over those that others have locked.
    #[doc(hidden)]
    const LOCK_ROWS: &'static str;

    /// Whether there is but one lock for all partitions.
    #[doc(hidden)]
    const ONE_LOCK: bool = false;

    /// How SQL is read, to know what the caller's pieces of it have in them.
    #[doc(hidden)]
    const LEXIS: Lexis;

    /// What stands before and behind each part of a name, and is doubled within.
    #[doc(hidden)]
    const QUOTE: char;

    /// An expression for the key as text, as [`Key::parse`] understands it.
    #[doc(hidden)]
    fn key_as_text(kind: Key, key: &str) -> String;

    /// An expression for an integer that is the same whenever the key is.
    #[doc(hidden)]
    fn key_as_number(kind: Key, key: &str) -> String;

    /// Whether a column of this type can be such a key, as far as the type alone tells.
    #[doc(hidden)]
    fn suits(_kind: Key, _key_type: &str) -> bool {
        true
    }

    /// What a column may hold to be such a key, for those who have said another.
    #[doc(hidden)]
    fn accepted(kind: Key) -> &'static str;

    /// Appends the key as a bind, such that an index on the column serves a comparison with it.
    #[doc(hidden)]
    fn push_key(sql: &mut Sql, key: &KeyValue, _key_type: &str) {
        sql.bind(Part::from(key));
    }

    /// Sets up a new session. Where sessions may be shared behind a proxy, it does nothing that would stay with one.
    #[doc(hidden)]
    fn set_up<C>(conn: &mut C) -> QueryResult<()>
    where
        C: LoadConnection<Backend = Self>;

    /// Looks the table up; `None` where there is none. The table's name comes in parts, without quotes.
    #[doc(hidden)]
    fn describe<C>(conn: &mut C, table: &[&str], key: &str) -> QueryResult<Option<Described>>
    where
        C: LoadConnection<Backend = Self>;

    /// Runs statements that only read, in a transaction of their own at READ COMMITTED, whatever the session's level is: what
    /// others may yet roll back is not seen, and nothing waits for them.
    #[doc(hidden)]
    fn read<C, T, E>(conn: &mut C, work: impl FnOnce(&mut C) -> Result<T, E>) -> Result<T, E>
    where
        C: LoadConnection<Backend = Self>,
        E: From<Error>,
    {
        Self::write_transaction(conn, work)
    }

    /// Begins a transaction at READ COMMITTED that holds the lock, or says that somebody else has it.
    #[doc(hidden)]
    fn begin<C>(conn: &mut C, lock: &Lock) -> QueryResult<Take>
    where
        C: LoadConnection<Backend = Self>;

    /// What a SELECT for keys and numbers has behind it to tell, by a row with the number 1, that the transaction is not the
    /// one that was begun with the lock.
    #[doc(hidden)]
    const TELLS_OF_END: &'static str = "";

    /// Fails where the transaction is not the one that was begun with the lock, unless [`TELLS_OF_END`](Self::TELLS_OF_END)
    /// tells.
    #[doc(hidden)]
    fn check_open<C>(conn: &mut C) -> QueryResult<()>
    where
        C: LoadConnection<Backend = Self>,
    {
        conn.batch_execute(RELEASE)
    }

    /// Frees the lock after the transaction's end, where it does not go with it.
    #[doc(hidden)]
    fn release<C>(_conn: &mut C, _lock: &Lock) -> QueryResult<()>
    where
        C: LoadConnection<Backend = Self>,
    {
        Ok(())
    }

    /// Runs a SELECT for rows and their keys.
    #[doc(hidden)]
    fn rows<C, T>(conn: &mut C, sql: Sql) -> QueryResult<Vec<Keyed<T>>>
    where
        C: LoadConnection<Backend = Self>,
        T: QueryableByName<Self> + 'static;

    /// Runs a SELECT for keys and numbers.
    #[doc(hidden)]
    fn numbered<C>(conn: &mut C, sql: Sql) -> QueryResult<Vec<Numbered>>
    where
        C: LoadConnection<Backend = Self>;
}

/// Any Diesel connection that partitions work on: `PgConnection`, `MysqlConnection`, `SqliteConnection`, or a wrapper of
/// your own. There is nothing to implement.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a Diesel connection that partitions work on",
    label = "give the `ConnectionManager` of a PgConnection, MysqlConnection or SqliteConnection",
    note = "and enable the feature `postgres`, `mysql` or `sqlite`"
)]
pub trait PartitionConnection: DbConnection<Db: PartitionBackend> {}

impl<C> PartitionConnection for C where C: DbConnection<Db: PartitionBackend> {}
