use crate::Database;
use diesel::connection::LoadConnection;

/// Any Diesel connection to a database that Gatun knows: `PgConnection`, `MysqlConnection`, `SqliteConnection`, an
/// r2d2 `PooledConnection` of one of them, or a wrapper of your own.
///
/// It is implemented for every such connection; there is nothing to implement.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a Diesel connection that Gatun can use",
    label = "pass a `&mut` PgConnection, MysqlConnection, SqliteConnection or an r2d2 PooledConnection of one",
    note = "with a pool call `pool.get()?` first; and enable Gatun's feature `postgres`, `mysql` or `sqlite`"
)]
pub trait DbConnection: LoadConnection<Backend = Self::Db> {
    /// The database behind this connection.
    type Db: Database;
}

impl<C> DbConnection for C
where
    C: LoadConnection,
    C::Backend: Database,
{
    type Db = C::Backend;
}
