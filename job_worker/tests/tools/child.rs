//! Other processes: this very program, told by its environment to be something else.

use std::io::{BufRead, BufReader, Lines};
use std::process::{Child as Process, ChildStdout, Command, ExitStatus, Stdio};

const URL: &str = "GATUN_TEST_CHILD_URL";

/// What a child's lines start with, among the lines of the test harness.
const MARK: &str = "child: ";

/// A child process that runs an ignored test of this program. It is killed when it is dropped.
pub(crate) struct Child {
    process: Process,
    lines: Lines<BufReader<ChildStdout>>,
}

impl Child {
    /// Starts the test of that name, in the module given by `module_path!()`, on a database.
    pub(crate) fn start(module: &str, test: &str, url: &str) -> Self {
        let (_, path) = module.split_once("::").unwrap();
        let mut process = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "--ignored", "--nocapture", "--test-threads=1"])
            .arg(format!("{path}::{test}"))
            .env(URL, url)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let lines = BufReader::new(process.stdout.take().unwrap()).lines();
        Child { process, lines }
    }

    /// The next thing that the child says; `None` at its end.
    pub(crate) fn hear(&mut self) -> Option<String> {
        self.lines.by_ref().map(Result::unwrap).find_map(|line| {
            let (_, said) = line.split_once(MARK)?;
            Some(said.to_owned())
        })
    }

    /// Sends a signal by its name.
    pub(crate) fn signal(&self, name: &str) {
        let status = Command::new("kill")
            .args(["-s", name, &self.process.id().to_string()])
            .status()
            .unwrap();
        assert!(status.success());
    }

    pub(crate) fn wait(&mut self) -> ExitStatus {
        // Its harness must not wait for somebody to read.
        while self.hear().is_some() {}
        self.process.wait().unwrap()
    }
}

impl Drop for Child {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// The database of a child; `None` where nobody has started this process as one.
pub(crate) fn url() -> Option<String> {
    std::env::var(URL).ok()
}

/// Says something to the parent.
pub(crate) fn say(text: &str) {
    println!("\n{MARK}{text}");
}
