use super::{Kind, first_column};
use diesel::connection::SimpleConnection;
use diesel::{Connection, QueryResult, SqliteConnection};
use std::fs;
use std::path::Path;

/// SQLite: each test has a file of its own in a folder of its own.
#[derive(Debug)]
pub struct Sqlite;

impl Kind for Sqlite {
    const NAME: &'static str = "sqlite";
    type Conn = SqliteConnection;

    fn server() -> String {
        let folder = std::env::temp_dir();
        folder.to_str().expect("a path in UTF-8").to_owned()
    }

    fn create(server: &str, name: &str) -> String {
        let folder = Path::new(server).join(name);
        fs::create_dir(&folder).expect("a new folder");
        let path = folder.join("test.sqlite3");
        let url = path.to_str().expect("a path in UTF-8").to_owned();
        SqliteConnection::establish(&url)
            .expect("a new file")
            .batch_execute("PRAGMA journal_mode = WAL")
            .expect("a file in WAL mode");
        url
    }

    fn remove(server: &str, name: &str) -> Result<(), String> {
        fs::remove_dir_all(Path::new(server).join(name)).map_err(|error| error.to_string())
    }

    fn set_up(conn: &mut SqliteConnection) -> QueryResult<()> {
        // The wait is longer than an app's would be, since tests share few processors.
        conn.batch_execute("PRAGMA busy_timeout = 30000; PRAGMA synchronous = NORMAL")
    }

    first_column!();
}
