use anyhow::Context as _;
use rustix::process::{Pid, Signal, kill_process};
use signal_hook::consts::{SIGCHLD, SIGHUP, SIGINT, SIGTERM};
use signal_hook::iterator::Signals;
use std::io::{BufRead as _, BufReader};
use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::os::unix::process::CommandExt as _;
use std::process::{Child, Command, Stdio};

pub(crate) const WEB_ADDRESS: SocketAddr = SocketAddr::new(std::net::IpAddr::V4(Ipv4Addr::LOCALHOST), 3000);

/// Starts the payment service, the shop and a worker, each as a process, and waits for Ctrl-C.
pub(crate) fn start() -> anyhow::Result<()> {
    let mut signals = Signals::new([SIGINT, SIGTERM, SIGHUP, SIGCHLD])?;
    let mut children = Children(Vec::new());
    let payments = children.start_server(&["payment-service", "--listen", "127.0.0.1:0"])?;
    let web = children.start_server(&["web", "--listen", &free_address()])?;
    children.start(&["worker", "--payment-url", &payments], Stdio::inherit())?;
    println!("\nThe shop is open at {web}\nThe charges are at {payments}/charges\nCtrl-C closes it.\n");

    let mut stopping = false;
    for signal in signals.forever() {
        children
            .0
            .retain_mut(|child| matches!(child.try_wait(), Ok(None)));
        if children.0.is_empty() {
            break;
        }
        match (signal, stopping) {
            (SIGCHLD, true) => {}
            (_, false) => children.terminate(),
            (_, true) => children.kill(),
        }
        stopping = true;
    }
    Ok(())
}

/// The usual port if it is free, else any.
fn free_address() -> String {
    match TcpListener::bind(WEB_ADDRESS) {
        Ok(_) => WEB_ADDRESS.to_string(),
        Err(_) => "127.0.0.1:0".into(),
    }
}

/// Processes that do not outlive this one.
struct Children(Vec<Child>);

impl Children {
    /// Starts this program with other arguments.
    fn start(&mut self, args: &[&str], stdout: Stdio) -> anyhow::Result<&mut Child> {
        let child = Command::new(std::env::current_exe()?)
            .args(args)
            .stdout(stdout)
            // A group of its own: Ctrl-C reaches only us, and we pass it on.
            .process_group(0)
            .spawn()?;
        self.0.push(child);
        self.0.last_mut().context("the child that was just started")
    }

    /// Starts a server, and gives its URL when it takes requests.
    fn start_server(&mut self, args: &[&str]) -> anyhow::Result<String> {
        let child = self.start(args, Stdio::piped())?;
        let mut line = String::new();
        BufReader::new(child.stdout.as_mut().context("a pipe")?).read_line(&mut line)?;
        let url = line.find("http://").map(|at| line[at..].trim().to_owned());
        url.with_context(|| format!("{} did not start", args[0]))
    }

    fn terminate(&self) {
        for child in &self.0 {
            let _ = kill_process(Pid::from_child(child), Signal::TERM);
        }
    }

    fn kill(&mut self) {
        for child in &mut self.0 {
            let _ = child.kill();
        }
    }
}

impl Drop for Children {
    fn drop(&mut self) {
        self.kill();
    }
}
