use super::{Kind, first_column, server_url};
use diesel::connection::SimpleConnection;
use diesel::{Connection, MysqlConnection, QueryResult};

/// MySQL or MariaDB: each test has a database of its own on the server of `MYSQL_DATABASE_URL`.
#[derive(Debug)]
pub struct Mysql;

impl Kind for Mysql {
    const NAME: &'static str = "mysql";
    type Conn = MysqlConnection;

    fn server() -> String {
        server_url("MYSQL_DATABASE_URL")
    }

    fn create(server: &str, name: &str) -> String {
        admin(server)
            .unwrap_or_else(|error| panic!("{error}"))
            .batch_execute(&format!("CREATE DATABASE {name} CHARACTER SET utf8mb4"))
            .expect("a new database");
        with_database(server, name)
    }

    fn remove(server: &str, name: &str) -> Result<(), String> {
        // A transaction that a failed test left open must not hang the whole run.
        admin(server)?
            .batch_execute(&format!(
                "SET SESSION lock_wait_timeout = 10; DROP DATABASE IF EXISTS {name}"
            ))
            .map_err(|error| error.to_string())
    }

    fn set_up(_: &mut MysqlConnection) -> QueryResult<()> {
        Ok(())
    }

    first_column!();
}

fn admin(server: &str) -> Result<MysqlConnection, String> {
    MysqlConnection::establish(server).map_err(|error| format!("no connection to {server}: {error}"))
}

/// Puts the database's name in the place of the URL's path.
fn with_database(base: &str, name: &str) -> String {
    let (address, query) = match base.split_once('?') {
        Some((address, query)) => (address, format!("?{query}")),
        None => (base, String::new()),
    };
    let host = address.find("://").map_or(0, |at| at + 3);
    let end = address[host..].find('/').map_or(address.len(), |at| host + at);
    format!("{}/{name}{query}", &address[..end])
}

#[cfg(test)]
mod tests {
    use super::with_database;

    #[test]
    fn the_database_takes_the_place_of_the_path() {
        assert_eq!(with_database("mysql://root@h:3/", "d"), "mysql://root@h:3/d");
        assert_eq!(with_database("mysql://root@h:3", "d"), "mysql://root@h:3/d");
        assert_eq!(
            with_database("mysql://h/old?ssl_mode=disabled", "d"),
            "mysql://h/d?ssl_mode=disabled"
        );
    }
}
