use super::folder::Folder;
use super::{free_port, is_root, program};
use crate::eventually;
use std::fs::File;
use std::net::TcpStream;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};

/// A private PgBouncer in front of a PostgreSQL server, which gives its few sessions to its clients for one transaction at
/// a time.
#[derive(Debug)]
pub struct PgBouncer {
    port: u16,
    // In this order, so that the process is gone when the folder goes.
    process: Child,
    _folder: Folder,
}

impl PgBouncer {
    /// Starts one in transaction mode with `sessions` server connections, to the server of `url` (`postgres://user@host:port/…`).
    ///
    /// # Panics
    /// When PgBouncer is not installed, or does not start.
    pub fn start(url: &str, sessions: u32) -> Self {
        let (user, host, port) = parts(url);
        for _ in 0..5 {
            let folder = Folder::new("postgres");
            let own_port = free_port();
            let file = folder.path().join("pgbouncer.ini");
            let users = folder.path().join("users.txt");
            let text = format!(
                "[databases]\n* = host={host} port={port} user={user}\n\
                 [pgbouncer]\nlisten_addr = 127.0.0.1\nlisten_port = {own_port}\nunix_socket_dir =\n\
                 auth_type = any\nauth_file = {}\npool_mode = transaction\ndefault_pool_size = {sessions}\n\
                 max_client_conn = 200\nignore_startup_parameters = extra_float_digits,options\n",
                users.display()
            );
            std::fs::write(&users, format!("\"{user}\" \"\"\n")).expect("a file of users");
            std::fs::write(&file, text).expect("a configuration");
            let log = || {
                File::options()
                    .create(true)
                    .append(true)
                    .open(folder.path().join("log"))
            };
            let mut process = command()
                .arg(&file)
                .stdin(Stdio::null())
                .stdout(log().expect("a log"))
                .stderr(log().expect("a log"))
                .spawn()
                .expect("a new process");
            let mut ended = false;
            eventually("PgBouncer takes connections or ends", || {
                ended = process.try_wait().expect("a process to ask").is_some();
                ended || TcpStream::connect(("127.0.0.1", own_port)).is_ok()
            });
            if !ended {
                return Self {
                    port: own_port,
                    process,
                    _folder: folder,
                };
            }
            eprintln!(
                "{}",
                std::fs::read_to_string(folder.path().join("log")).unwrap_or_default()
            );
        }
        panic!("PgBouncer does not start");
    }

    /// The URL through PgBouncer, of the same database and with the same parameters.
    pub fn url(&self, url: &str) -> String {
        let (_, host, port) = parts(url);
        url.replacen(&format!("{host}:{port}"), &format!("127.0.0.1:{}", self.port), 1)
    }
}

impl Drop for PgBouncer {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// It refuses to run as root. `setpriv` becomes the program itself, so that a kill reaches it.
fn command() -> Command {
    let program = program("pgbouncer", &["/usr/sbin", "/usr/local/sbin"].map(PathBuf::from));
    if !is_root() {
        return Command::new(program);
    }
    let mut command = Command::new("setpriv");
    command
        .args(["--reuid=postgres", "--regid=postgres", "--init-groups"])
        .arg(program);
    command
}

/// User, host and port of a URL.
fn parts(url: &str) -> (&str, &str, &str) {
    let rest = url.split_once("://").map_or(url, |(_, rest)| rest);
    let authority = rest.split('/').next().unwrap_or(rest);
    let (user, address) = authority.split_once('@').unwrap_or(("postgres", authority));
    let (host, port) = address.split_once(':').unwrap_or((address, "5432"));
    (user.split(':').next().unwrap_or(user), host, port)
}
