use diesel::r2d2::R2D2Connection;
use diesel::result::QueryResult;
use job_db::DbConnection;

#[cfg(feature = "mysql")]
pub(crate) mod mysql;
#[cfg(feature = "postgres")]
pub(crate) mod postgres;
#[cfg(feature = "sqlite")]
pub(crate) mod sqlite;

/// A kind of database that tests run on.
pub trait Kind: std::fmt::Debug + Send + Sync + 'static {
    /// As in the features: `postgres`, `mysql`, `sqlite`.
    const NAME: &'static str;

    /// The plain Diesel connection.
    type Conn: DbConnection + R2D2Connection + Send + 'static;

    /// Where places are made: the server's URL, from the environment, or a folder.
    #[doc(hidden)]
    fn server() -> String;

    /// Makes an empty place of that name, and gives its URL.
    #[doc(hidden)]
    fn create(server: &str, name: &str) -> String;

    /// Removes the place again.
    #[doc(hidden)]
    fn remove(server: &str, name: &str) -> Result<(), String>;

    /// What an app does with each new connection.
    #[doc(hidden)]
    fn set_up(conn: &mut Self::Conn) -> QueryResult<()>;

    /// The first column of the rows, as bigint.
    #[doc(hidden)]
    fn bigints(conn: &mut Self::Conn, sql: &str) -> QueryResult<Vec<i64>>;

    /// The first column of the rows, as text.
    #[doc(hidden)]
    fn texts(conn: &mut Self::Conn, sql: &str) -> QueryResult<Vec<Option<String>>>;
}

#[cfg(any(feature = "postgres", feature = "mysql", feature = "sqlite"))]
/// The same two queries for each kind, since Diesel's bounds for them cannot be said for all kinds at once.
macro_rules! first_column {
    () => {
        fn bigints(conn: &mut Self::Conn, sql: &str) -> diesel::QueryResult<Vec<i64>> {
            use diesel::RunQueryDsl;
            diesel::dsl::sql::<diesel::sql_types::BigInt>(sql).load(conn)
        }

        fn texts(conn: &mut Self::Conn, sql: &str) -> diesel::QueryResult<Vec<Option<String>>> {
            use diesel::RunQueryDsl;
            diesel::dsl::sql::<diesel::sql_types::Nullable<diesel::sql_types::Text>>(sql).load(conn)
        }
    };
}
#[cfg(any(feature = "postgres", feature = "mysql", feature = "sqlite"))]
pub(crate) use first_column;

/// The URL of the server, from the environment.
#[cfg(any(feature = "postgres", feature = "mysql"))]
pub(crate) fn server_url(variable: &str) -> String {
    std::env::var(variable).unwrap_or_else(|_| {
        panic!(
            "{variable} is not set, and this test needs a server: run bin/test, or set it with \
             eval \"$(bin/databases start)\", or point it at a server of your own"
        )
    })
}
