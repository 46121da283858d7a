use crate::Kind;
use crate::invariants;
use diesel::Connection;
use diesel::r2d2::{ConnectionManager, CustomizeConnection, Error, Pool};
use std::marker::PhantomData;
use std::time::{SystemTime, UNIX_EPOCH};

/// A database for one test: a PostgreSQL schema, a MySQL or MariaDB database, or an SQLite file. It goes when the value
/// is dropped, also when the test has failed.
#[derive(Debug)]
pub struct TestDb<K: Kind> {
    server: String,
    name: String,
    url: String,
    kind: PhantomData<K>,
}

impl<K: Kind> TestDb<K> {
    /// A database with Gatun's tables.
    ///
    /// # Panics
    /// When the server cannot be reached, as everything here does when the database says no.
    #[allow(clippy::new_without_default)]
    #[track_caller]
    pub fn new() -> Self {
        Self::new_on(&K::server())
    }

    /// A database without tables.
    #[track_caller]
    pub fn empty() -> Self {
        Self::empty_on(&K::server())
    }

    /// A database with Gatun's tables, on a server of the test's own, such as one of [`server`](crate::server).
    #[track_caller]
    pub fn new_on(server: &str) -> Self {
        let db = Self::empty_on(server);
        job_db::migrate(&mut db.connect()).expect("migrated tables");
        db
    }

    #[track_caller]
    fn empty_on(server: &str) -> Self {
        let name = fresh_name();
        let url = K::create(server, &name);
        Self {
            server: server.to_owned(),
            name,
            url,
            kind: PhantomData,
        }
    }

    /// The URL, for other processes.
    pub fn url(&self) -> &str {
        &self.url
    }

    /// A connection as an app would open it.
    #[track_caller]
    pub fn connect(&self) -> K::Conn {
        let mut conn = K::Conn::establish(&self.url)
            .unwrap_or_else(|error| panic!("no connection to {}: {error}", self.url));
        K::set_up(&mut conn).expect("a session's settings");
        conn
    }

    /// For a pool with settings of its own. On SQLite its connections have no `busy_timeout` yet.
    pub fn manager(&self) -> ConnectionManager<K::Conn> {
        ConnectionManager::new(&self.url)
    }

    /// A pool as an app would make it.
    #[track_caller]
    pub fn pool(&self, size: u32) -> Pool<ConnectionManager<K::Conn>> {
        Pool::builder()
            .max_size(size)
            .connection_customizer(Box::new(SetUp::<K>(PhantomData)))
            .build(self.manager())
            .expect("a pool")
    }

    /// Runs SQL on a connection of its own.
    #[track_caller]
    pub fn execute(&self, sql: &str) {
        use diesel::connection::SimpleConnection;
        if let Err(error) = self.connect().batch_execute(sql) {
            panic!("{error} in: {sql}");
        }
    }

    /// The number in the first column of the first row, which must be a bigint, such as `count(*)`.
    #[track_caller]
    pub fn count(&self, sql: &str) -> i64 {
        let numbers = self.bigints(sql);
        *numbers.first().unwrap_or_else(|| panic!("no row from: {sql}"))
    }

    /// The first column of all rows, which must be a bigint.
    #[track_caller]
    pub fn bigints(&self, sql: &str) -> Vec<i64> {
        K::bigints(&mut self.connect(), sql).unwrap_or_else(|error| panic!("{error} in: {sql}"))
    }

    /// The text in the first column of the first row; `None` for NULL, and where there is no row.
    #[track_caller]
    pub fn text(&self, sql: &str) -> Option<String> {
        self.texts(sql).into_iter().next().flatten()
    }

    /// The first column of all rows, which must be a text.
    #[track_caller]
    pub fn texts(&self, sql: &str) -> Vec<Option<String>> {
        K::texts(&mut self.connect(), sql).unwrap_or_else(|error| panic!("{error} in: {sql}"))
    }

    /// Checks what must be so at every commit, over the whole database: that each job is in exactly one status table,
    /// that nothing is in one without its job, and that unique keys are held exactly as long as they must be.
    ///
    /// # Panics
    /// With the ids of the jobs that break it.
    #[track_caller]
    pub fn assert_invariants(&self) {
        let broken = invariants::broken(|sql| self.bigints(sql));
        assert!(
            broken.is_empty(),
            "broken in {}:\n{}",
            self.url,
            broken.join("\n")
        );
    }
}

impl<K: Kind> Drop for TestDb<K> {
    fn drop(&mut self) {
        // Never a panic: it would hide what the test has to say.
        if let Err(error) = K::remove(&self.server, &self.name) {
            eprintln!("{} {} stays behind: {error}", K::NAME, self.name);
        }
    }
}

/// Different in each test, process and run.
fn fresh_name() -> String {
    let time = SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .map_or(0, |time| time.as_millis());
    format!(
        "gatun_test_{}_{time:x}_{:08x}",
        std::process::id(),
        fastrand::u32(..)
    )
}

#[derive(Debug)]
struct SetUp<K>(PhantomData<K>);

impl<K: Kind> CustomizeConnection<K::Conn, Error> for SetUp<K> {
    fn on_acquire(&self, conn: &mut K::Conn) -> Result<(), Error> {
        K::set_up(conn).map_err(Error::QueryError)
    }
}
