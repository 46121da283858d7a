pub(crate) mod lease;
pub(crate) mod slot;

use self::lease::LeaseBackend;
use self::slot::SlotBackend;
use crate::LockRow;
use diesel::connection::LoadConnection;
use diesel::result::{Error, QueryResult};
use job_db::{Database, DbConnection};
use std::time::Duration;

/// What a transaction sees when it reaches for a lock's row.
#[derive(Debug)]
pub enum RowLock {
    /// This transaction has the row now.
    Taken {
        /// The last token that was given out.
        token: i64,
        /// Who wrote it.
        owner: Option<String>,
    },
    /// Another transaction has it.
    Held,
    /// This transaction has the row now, but it is under a lease.
    Leased,
    /// There is no such row.
    Missing,
    /// The row can be had no more in this transaction, which has looked at the database before another one changed it.
    Stale,
}

/// What a transaction has that took a lock by waiting in the queue.
#[derive(Clone, Copy, Debug)]
pub struct Taken {
    /// The fencing token.
    pub token: i64,
    /// What [`commit_if`](LockBackend::commit_if) knows the transaction by; `None`: nothing yet.
    pub mark: Option<i64>,
}

/// How transactions stood in each other's way.
#[derive(Debug)]
pub enum Clash {
    /// Each waited for the other, and the database chose this one to end it.
    Deadlock,
    /// This one has looked at the database before the other changed it.
    Stale,
}

/// What locks need of a database, implemented for Diesel's `Pg`, `Mysql` and `Sqlite`. It is sealed by [`Database`], and
/// none of its methods is for users.
#[diagnostic::on_unimplemented(
    message = "this build of job_lock does not know `{Self}`",
    note = "enable job_lock's feature `sqlite`, `postgres` or `mysql`, whichever the connection is of"
)]
pub trait LockBackend: Database + LeaseBackend + SlotBackend {
    /// How long to pause between two looks at a lock that is held, on average.
    #[doc(hidden)]
    const PAUSE: Duration;

    /// Whether the database has a queue for those who wait for a row.
    #[doc(hidden)]
    const HAS_QUEUE: bool;

    /// Begins a transaction at READ COMMITTED, on a connection that is in none.
    #[doc(hidden)]
    fn begin<C>(conn: &mut C) -> QueryResult<()>
    where
        C: LoadConnection<Backend = Self>;

    /// Begins a transaction that [`take`](LockBackend::take) comes next in, which may then see to the isolation level.
    #[doc(hidden)]
    fn begin_to_take<C>(conn: &mut C) -> QueryResult<()>
    where
        C: LoadConnection<Backend = Self>,
    {
        Self::begin(conn)
    }

    /// Commits the transaction, if it is the one that has this mark, which [`take`](LockBackend::take) gave. `false`: it is
    /// not, or it has failed.
    #[doc(hidden)]
    fn commit_if<C>(_conn: &mut C, _mark: i64) -> QueryResult<bool>
    where
        C: LoadConnection<Backend = Self>,
    {
        Ok(false) // where `take` gives no mark
    }

    /// Takes the row by writing the next token, and waits in the database's queue for it. `None`: there is no row, or it
    /// is under a lease. The first lock of a transaction may find it at another level, and begin it anew.
    #[doc(hidden)]
    fn take<C>(conn: &mut C, name: &str, owner: &str, _is_first: bool) -> QueryResult<Option<Taken>>
    where
        C: LoadConnection<Backend = Self>,
    {
        Ok(Self::advance(conn, name, owner)?.map(|token| Taken { token, mark: None }))
    }

    /// Takes the row and writes nothing. It waits as long as it must where `limit` is `None`; else at most as long as
    /// `limit`, or not at all where the database cannot tell how long.
    #[doc(hidden)]
    fn lock_row<C>(conn: &mut C, name: &str, limit: Option<Duration>) -> QueryResult<RowLock>
    where
        C: LoadConnection<Backend = Self>;

    /// Writes the next token and the owner, and gives the token. `None`: there is no row, or it is under a lease.
    #[doc(hidden)]
    fn advance<C>(conn: &mut C, name: &str, owner: &str) -> QueryResult<Option<i64>>
    where
        C: LoadConnection<Backend = Self>;

    /// The token and the owner as this connection's own transaction sees them, without waiting, and never as another
    /// transaction has written them without a commit.
    #[doc(hidden)]
    fn seen<C>(conn: &mut C, name: &str) -> QueryResult<Option<(i64, String)>>
    where
        C: LoadConnection<Backend = Self>;

    /// Whether there is such a row.
    #[doc(hidden)]
    fn exists<C>(conn: &mut C, name: &str) -> QueryResult<bool>
    where
        C: LoadConnection<Backend = Self>;

    /// Makes the row; `false` where there is one.
    #[doc(hidden)]
    fn create<C>(conn: &mut C, name: &str) -> QueryResult<bool>
    where
        C: LoadConnection<Backend = Self>;

    /// All locks by name.
    #[doc(hidden)]
    fn list<C>(conn: &mut C) -> QueryResult<Vec<LockRow>>
    where
        C: LoadConnection<Backend = Self>;

    /// Whether other transactions are why a statement failed, and how.
    #[doc(hidden)]
    fn clash(error: &Error) -> Option<Clash>;

    /// Whether a person, or another session, has ended the statement, which is no limit on waiting. (`Fault` counts that
    /// among what passes.)
    #[doc(hidden)]
    fn was_cancelled(_error: &Error) -> bool {
        false
    }

    /// Whether no connection was to be had for a reason that another try will meet again, such as a wrong password.
    #[doc(hidden)]
    fn refuses(message: &str) -> bool;
}

/// Any Diesel connection that locks work on: `PgConnection`, `MysqlConnection`, `SqliteConnection`, an r2d2
/// `PooledConnection` of one of them, or a wrapper of your own. There is nothing to implement.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a Diesel connection that locks work on",
    label = "pass a `&mut` PgConnection, MysqlConnection, SqliteConnection or an r2d2 PooledConnection of one",
    note = "with a pool call `pool.get()?` first; and enable the feature `postgres`, `mysql` or `sqlite`"
)]
pub trait LockConnection: DbConnection<Db: LockBackend> {}

impl<C> LockConnection for C where C: DbConnection<Db: LockBackend> {}
