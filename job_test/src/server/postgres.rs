use super::folder::Folder;
use super::{free_port, is_root, program, run};
use std::path::PathBuf;
use std::process::Command;

/// A private PostgreSQL server with its default durability, which a test may stop without warning.
#[derive(Debug)]
pub struct PostgresServer {
    port: u16,
    folder: Folder,
}

impl PostgresServer {
    /// Makes a new cluster and starts its server.
    ///
    /// # Panics
    /// When PostgreSQL is not installed, or does not start.
    pub fn start() -> Self {
        let mut server = Self {
            port: 0,
            folder: Folder::new("postgres"),
        };
        let mut initdb = server.command("initdb");
        initdb.args(["-U", "postgres", "--auth=trust", "-E", "UTF8", "--locale=C"]);
        // Only the empty cluster is not synced; the server itself syncs all that it commits.
        initdb.arg("--no-sync");
        server.run(&mut initdb).expect("a new cluster");
        for _ in 0..5 {
            server.port = free_port();
            if server.try_start().is_ok() {
                return server;
            }
        }
        panic!("PostgreSQL does not start: {:?}", server.try_start());
    }

    /// The URL of its database `postgres`.
    pub fn url(&self) -> String {
        format!("postgres://postgres@127.0.0.1:{}/postgres", self.port)
    }

    /// Stops the server as a crash would: no checkpoint, connections cut off.
    pub fn stop_immediate(&self) {
        let mut stop = self.command("pg_ctl");
        stop.args(["-w", "-t", "60", "-m", "immediate", "stop"]);
        self.run(&mut stop).expect("a stopped server");
    }

    /// Starts the stopped server on the same port; it recovers what was committed.
    pub fn start_again(&self) {
        self.try_start().expect("a server that starts again");
    }

    fn try_start(&self) -> Result<(), String> {
        let options = format!(
            "-p {} -k {} -c listen_addresses=127.0.0.1 -c max_connections=200",
            self.port,
            self.folder.path().display()
        );
        let mut start = self.command("pg_ctl");
        start.args(["-w", "-t", "60", "-o", &options, "start"]);
        self.run(&mut start)
    }

    /// A command on the cluster, run as the user `postgres` where the test runs as root.
    fn command(&self, name: &str) -> Command {
        let program = program(name, &places());
        let mut command = if is_root() {
            let mut command = Command::new("runuser");
            command.args(["-u", "postgres", "--"]).arg(program);
            command
        } else {
            Command::new(program)
        };
        command.current_dir(self.folder.path());
        command.arg("-D").arg(self.folder.path().join("data"));
        command
    }

    fn run(&self, command: &mut Command) -> Result<(), String> {
        run(command, &self.folder.path().join("log"))
    }
}

impl Drop for PostgresServer {
    fn drop(&mut self) {
        let mut stop = self.command("pg_ctl");
        stop.args(["-w", "-m", "immediate", "stop"]);
        // It fails where the test has stopped the server already.
        let _ = self.run(&mut stop);
    }
}

/// Debian keeps the server's programs here, in one folder for each version; the newest comes first.
fn places() -> Vec<PathBuf> {
    let mut versions: Vec<(u32, PathBuf)> = std::fs::read_dir("/usr/lib/postgresql")
        .into_iter()
        .flatten()
        .flatten()
        .filter_map(|entry| {
            Some((
                entry.file_name().to_str()?.parse().ok()?,
                entry.path().join("bin"),
            ))
        })
        .collect();
    versions.sort();
    versions.into_iter().rev().map(|(_, folder)| folder).collect()
}
