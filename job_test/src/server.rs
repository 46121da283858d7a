//! Servers of one's own, for tests that stop or kill one. They keep what is committed, as in production: these are not the
//! fast and forgetful servers of `bin/test`.

mod folder;
mod mariadb;
mod pgbouncer;
mod postgres;
mod tap;

pub use mariadb::MariadbServer;
pub use pgbouncer::PgBouncer;
pub use postgres::PostgresServer;
pub use tap::Tap;

use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// Somebody may take the port before the server does; so the callers try again.
fn free_port() -> u16 {
    TcpListener::bind("127.0.0.1:0")
        .and_then(|listener| listener.local_addr())
        .expect("a free port")
        .port()
}

/// Finds a program in PATH or in `places`.
fn program(name: &str, places: &[PathBuf]) -> PathBuf {
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path)
        .chain(places.iter().cloned())
        .map(|folder| folder.join(name))
        .find(|file| file.is_file())
        .unwrap_or_else(|| {
            panic!("the program {name} is neither in PATH nor in {places:?}: install the server, as bin/test does")
        })
}

/// Servers refuse to run as root.
fn is_root() -> bool {
    let output = Command::new("id").arg("-u").output().expect("the command id");
    output.stdout == b"0\n"
}

/// Runs a command to its end, with its output in a log: a server that it leaves running would keep a pipe open.
fn run(command: &mut Command, log: &Path) -> Result<(), String> {
    let file = |_| {
        std::fs::File::options()
            .create(true)
            .append(true)
            .open(log)
            .expect("a log")
    };
    let status = command
        .stdin(Stdio::null())
        .stdout(file(()))
        .stderr(file(()))
        .status()
        .map_err(|error| format!("{command:?}: {error}"))?;
    if status.success() {
        return Ok(());
    }
    let text = std::fs::read_to_string(log).unwrap_or_default();
    Err(format!("{command:?} ended with {status}:\n{text}"))
}
