use diesel::connection::LoadConnection;
use diesel::result::QueryResult;
use job_db::Database;

/// One acquisition of a lease, as its row in the table knows it.
#[derive(Clone, Copy, Debug)]
pub struct LeaseKey<'a> {
    /// The lock's name.
    pub name: &'a str,
    /// Unlike any other acquisition's.
    pub owner: &'a str,
    /// The fencing token.
    pub token: i64,
}

/// What leases need of a database. All times are durations in microseconds, added to the database's own clock: none of
/// the client's clock ever enters a statement. `lease`, `renew` and `release` are called in
/// [`at_once`](LeaseBackend::at_once), as is what makes a lock; `fence` in a transaction that goes on.
pub trait LeaseBackend: Database {
    /// Does `work` and commits it, on a connection that is in no transaction. A process that is suspended in the middle must
    /// not keep the row from others for much longer than `ttl`: between the statement and a COMMIT of its own it would, for as
    /// long as its session is there.
    #[doc(hidden)]
    fn at_once<C, T>(conn: &mut C, ttl: i64, work: impl FnOnce(&mut C) -> QueryResult<T>) -> QueryResult<T>
    where
        C: LoadConnection<Backend = Self>;

    /// Takes the row if nobody has it, by a transaction or by a lease that goes on, and gives the token. It never waits for
    /// a holder. `None`: somebody has it, or there is no row; an error where others are in the way of knowing.
    #[doc(hidden)]
    fn lease<C>(conn: &mut C, name: &str, owner: &str, ttl: i64) -> QueryResult<Option<i64>>
    where
        C: LoadConnection<Backend = Self>;

    /// Lets the lease end at the database's time plus `ttl`. `false`: it is another's.
    #[doc(hidden)]
    fn renew<C>(conn: &mut C, key: LeaseKey<'_>, ttl: i64) -> QueryResult<bool>
    where
        C: LoadConnection<Backend = Self>;

    /// As [`renew`](LeaseBackend::renew), and waits for the row as long as it takes, since it stays locked from then on.
    #[doc(hidden)]
    fn fence<C>(conn: &mut C, key: LeaseKey<'_>, ttl: i64) -> QueryResult<bool>
    where
        C: LoadConnection<Backend = Self>,
    {
        Self::renew(conn, key, ttl)
    }

    /// Ends the lease, at once or when it is as old as `at_least`. `false`: it is another's.
    #[doc(hidden)]
    fn release<C>(conn: &mut C, key: LeaseKey<'_>, at_least: i64) -> QueryResult<bool>
    where
        C: LoadConnection<Backend = Self>;
}
