use super::folder::Folder;
use super::{free_port, is_root, program, run};
use crate::eventually;
use std::fs::File;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};

/// A private MariaDB server with its default durability, which a test may kill.
#[derive(Debug)]
pub struct MariadbServer {
    port: u16,
    // In this order, so that the server is gone when the folder goes.
    process: Option<Child>,
    folder: Folder,
}

impl MariadbServer {
    /// Makes a new data folder and starts its server.
    ///
    /// # Panics
    /// When MariaDB is not installed, or does not start.
    pub fn start() -> Self {
        let mut server = Self {
            port: 0,
            process: None,
            folder: Folder::new("mysql"),
        };
        let mut install = server.command("mariadb-install-db");
        install.args(["--auth-root-authentication-method=normal", "--skip-name-resolve"]);
        run(&mut install, &server.folder.path().join("log")).expect("a new data folder");
        for _ in 0..5 {
            server.port = free_port();
            if server.try_start() {
                return server;
            }
        }
        panic!("MariaDB does not start: {}", server.log());
    }

    /// The URL of its database `test`, which is empty.
    pub fn url(&self) -> String {
        format!("mysql://root@127.0.0.1:{}/test", self.port)
    }

    /// Kills the server with SIGKILL.
    pub fn kill(&mut self) {
        if let Some(mut process) = self.process.take() {
            process.kill().expect("a killed server");
            process.wait().expect("an ended server");
        }
    }

    /// Starts the killed server on the same port; it recovers what was committed.
    pub fn start_again(&mut self) {
        assert!(self.try_start(), "MariaDB does not start again: {}", self.log());
    }

    /// Waits until the server takes connections, and says whether it came to that.
    fn try_start(&mut self) -> bool {
        let path = self.folder.path();
        let pid_file = path.join("pid");
        // One of a killed server would look like a server that is ready.
        let _ = std::fs::remove_file(&pid_file);
        let log = || {
            File::options()
                .create(true)
                .append(true)
                .open(path.join("log"))
                .expect("a log")
        };
        let mut command = self.command("mariadbd");
        command
            .arg(format!("--socket={}", path.join("socket").display()))
            .arg(format!("--pid-file={}", pid_file.display()))
            .arg(format!("--port={}", self.port))
            .args([
                "--bind-address=127.0.0.1",
                "--skip-name-resolve",
                "--max-connections=200",
            ])
            .stdin(Stdio::null())
            .stdout(log())
            .stderr(log());
        let mut process = command.spawn().expect("a new process");
        let mut ended = false;
        eventually("MariaDB takes connections or ends", || {
            ended = process.try_wait().expect("a process to ask").is_some();
            ended || pid_file.exists()
        });
        self.process = Some(process);
        !ended
    }

    fn command(&self, name: &str) -> Command {
        let places = ["/usr/sbin", "/usr/libexec", "/usr/local/sbin"].map(PathBuf::from);
        let mut command = Command::new(program(name, &places));
        // Must come first.
        command.arg("--no-defaults");
        if is_root() {
            command.arg("--user=mysql");
        }
        command.arg(format!("--datadir={}", self.folder.path().join("data").display()));
        // Of its own: a server that starts removes what looks left over there, also that of another one.
        command.env("TMPDIR", self.folder.path());
        command
    }

    fn log(&self) -> String {
        std::fs::read_to_string(self.folder.path().join("log")).unwrap_or_default()
    }
}

impl Drop for MariadbServer {
    fn drop(&mut self) {
        if let Some(process) = &mut self.process {
            let _ = process.kill();
            let _ = process.wait();
        }
    }
}
