use std::io::{BufRead as _, BufReader};
use std::path::PathBuf;
use std::process::{Child, Command, ExitStatus, Stdio};

/// One process of the example, in a folder of its own; killed, as by `kill -9`, when the value is dropped.
pub(crate) struct Process {
    child: Child,
    folder: PathBuf,
    /// Where it takes requests, if it is a server.
    pub(crate) url: String,
}

impl Process {
    pub(crate) fn start(database: &str, args: &[&str]) -> Self {
        let name = format!("storefront-{}-{:08x}", std::process::id(), fastrand::u32(..));
        let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(name);
        std::fs::create_dir_all(&folder).expect("a folder");
        let child = Command::new(env!("CARGO_BIN_EXE_storefront"))
            .args(args)
            .current_dir(&folder)
            .env("DATABASE_URL", database)
            .env("RUST_LOG", "warn")
            .stdout(Stdio::piped())
            .spawn()
            .expect("a process");
        Process {
            child,
            folder,
            url: String::new(),
        }
    }

    /// Starts a server, and waits until it takes requests.
    pub(crate) fn server(database: &str, args: &[&str]) -> Self {
        let mut process = Process::start(database, args);
        let stdout = process.child.stdout.as_mut().expect("a pipe");
        process.url = BufReader::new(stdout)
            .lines()
            .map_while(Result::ok)
            .find_map(|line| line.find("http://").map(|at| line[at..].to_owned()))
            .expect("the server's address");
        process
    }

    /// Starts the shop: `web` or `async-web`.
    pub(crate) fn web(command: &str, database: &str) -> Self {
        Process::server(database, &[command, "--listen", "127.0.0.1:0"])
    }

    pub(crate) fn terminate(&mut self) -> ExitStatus {
        let pid = rustix::process::Pid::from_child(&self.child);
        rustix::process::kill_process(pid, rustix::process::Signal::TERM).expect("a signal that is sent");
        self.child.wait().expect("an end")
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
        let _ = std::fs::remove_dir_all(&self.folder);
    }
}
