//! Other processes, which want the same thing and are killed, suspended or cut off while they have it. Each is the test's own
//! program, run again with one ignored test, `play`, which plays the role that the crew has.
//!
//! The two sides speak by lines. A member says `held` when it has the thing, and waits for orders then: `act`, which it
//! answers by `acted` and its session's number, and `commit`, where its transaction lasts until that order, which it
//! answers by `committed`. The answer to either is `lost` where it has lost what it had.

use crate::eventually;
use std::collections::HashMap;
use std::io::{BufRead, BufReader, Write};
use std::os::unix::process::CommandExt;
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread;
use std::time::Duration;

const ROLE: &str = "GATUN_TEST_ROLE";
const ROUNDS: &str = "GATUN_KILL_ROUNDS";
/// Tells our lines from those of the test harness.
const OURS: &str = "gatun ";
const LIMIT: Duration = Duration::from_secs(60);

/// How many rounds a kill test has: as many as `GATUN_KILL_ROUNDS` says, or these.
///
/// # Panics
/// When that is no number.
pub fn rounds(usual: usize) -> usize {
    std::env::var(ROUNDS).map_or(usual, |text| text.parse().expect("a number of rounds"))
}

/// The processes, by number. They end when it is dropped.
#[derive(Debug)]
pub struct Crew {
    test: String,
    role: String,
    members: HashMap<usize, Member>,
    next: usize,
    lines: Receiver<(usize, String)>,
    tell: Sender<(usize, String)>,
    holders: Vec<usize>,
}

#[derive(Debug)]
struct Member {
    process: Child,
    orders: ChildStdin,
}

impl Crew {
    /// Starts so many, each of which runs the ignored test `play` of a module, given by `module_path!()`.
    pub fn start(module: &str, role: &str, size: usize) -> Self {
        let (tell, lines) = channel();
        let (_, path) = module.split_once("::").expect("a module of a test binary");
        let mut crew = Self {
            test: format!("{path}::play"),
            role: role.to_owned(),
            members: HashMap::new(),
            next: 0,
            lines,
            tell,
            holders: Vec::new(),
        };
        for _ in 0..size {
            crew.hire();
        }
        crew
    }

    fn hire(&mut self) {
        let mut process = Command::new(std::env::current_exe().expect("this program"))
            .args([
                &self.test,
                "--exact",
                "--ignored",
                "--nocapture",
                "--test-threads=1",
            ])
            .env(ROLE, &self.role)
            // A group of its own: where the shell that started the test ends first, the kernel wakes all suspended processes
            // of the test's own group, and whoever waits until one stands still would wait in vain.
            .process_group(0)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("a new process");
        let number = self.next;
        self.next += 1;
        let output = BufReader::new(process.stdout.take().expect("its output"));
        let tell = self.tell.clone();
        thread::spawn(move || {
            for line in output.lines().map_while(Result::ok) {
                if let Some((_, ours)) = line.split_once(OURS) {
                    let _ = tell.send((number, ours.to_owned()));
                }
            }
        });
        let orders = process.stdin.take().expect("its input");
        self.members.insert(number, Member { process, orders });
    }

    /// Waits until somebody has it.
    pub fn next_holder(&mut self) -> usize {
        while self.holders.is_empty() {
            self.hear();
        }
        self.holders.remove(0)
    }

    /// Tells one to act in a fenced transaction. The session in which it did; `None`: it has lost what it had.
    ///
    /// # Panics
    /// When it says anything else, as [`commit`](Self::commit) does.
    pub fn act(&mut self, number: usize) -> Option<i64> {
        match self.order(number, "act").as_str() {
            "lost" => None,
            answer => {
                let session = answer.strip_prefix("acted ").and_then(|text| text.parse().ok());
                Some(session.unwrap_or_else(|| panic!("told to act: {answer}")))
            }
        }
    }

    /// Tells one that has acted to commit; `false`: it has lost what it had.
    pub fn commit(&mut self, number: usize) -> bool {
        match self.order(number, "commit").as_str() {
            "committed" => true,
            "lost" => false,
            answer => panic!("told to commit: {answer}"),
        }
    }

    fn order(&mut self, number: usize, what: &str) -> String {
        let orders = &mut self.members.get_mut(&number).expect("a member").orders;
        writeln!(orders, "{what}").expect("a member that hears");
        loop {
            let (from, line) = self.hear();
            if from == number && line != "held" {
                return line;
            }
        }
    }

    fn hear(&mut self) -> (usize, String) {
        let heard = self.lines.recv_timeout(LIMIT);
        let (number, line) = heard.expect("a process says something within a minute");
        if line == "held" && self.members.contains_key(&number) {
            self.holders.push(number);
        }
        (number, line)
    }

    /// Kills one by SIGKILL, and starts another in its place.
    pub fn kill(&mut self, number: usize) {
        let mut member = self.members.remove(&number).expect("a member");
        member.process.kill().expect("a process to kill");
        member.process.wait().expect("its end");
        self.holders.retain(|holder| *holder != number);
        self.hire();
    }

    /// Suspends one by SIGSTOP, and waits until it stands still: its threads go on until the first has seen the signal.
    pub fn suspend(&self, number: usize) {
        self.signal(number, "-STOP");
        let id = self.members[&number].process.id().to_string();
        eventually("a suspended process stands still", || {
            let state = Command::new("ps").args(["-o", "stat=", "-p", &id]).output();
            state
                .expect("the program ps")
                .stdout
                .trim_ascii_start()
                .starts_with(b"T")
        });
    }

    /// Lets a suspended one go on.
    pub fn resume(&self, number: usize) {
        self.signal(number, "-CONT");
    }

    fn signal(&self, number: usize, signal: &str) {
        let id = self.members[&number].process.id().to_string();
        let status = Command::new("kill").args([signal, &id]).status();
        assert!(status.expect("the program kill").success());
    }

    /// Kills all.
    pub fn end(&mut self) {
        for (_, mut member) in self.members.drain() {
            let _ = member.process.kill();
            let _ = member.process.wait();
        }
    }
}

impl Drop for Crew {
    fn drop(&mut self) {
        self.end();
    }
}

/// What the members of a crew do, each in one transaction that lasts until it is told to commit.
pub trait Rivalry {
    /// How the server ends the session of that number; `None` where there are no sessions to end.
    fn cut(&self) -> Option<Box<dyn Fn(i64) + '_>>;
    /// Asserts that nobody else may act now.
    fn assert_held(&self);
    /// Asserts that so many have acted and committed, and nobody twice.
    fn assert_committed(&self, number: i64);
}

impl Crew {
    /// Kills, suspends and cuts off whoever is about to commit, by turns: the next one proceeds, and nobody who has lost what it
    /// had commits. Gives how many have committed.
    ///
    /// # Panics
    /// Where that is not so.
    pub fn rival(&mut self, rivalry: &impl Rivalry, rounds: usize) -> i64 {
        let mut committed = 0;
        for round in 0..rounds {
            let (holder, session) = self.next_to_act();
            match (round % 3, rivalry.cut()) {
                (1, cut) => {
                    // Its session is there as long as nobody ends it.
                    self.suspend(holder);
                    rivalry.assert_held();
                    self.resume(holder);
                    assert!(self.commit(holder), "a holder commits");
                    committed += 1;
                    let (holder, session) = self.next_to_act();
                    self.suspend(holder);
                    rivalry.assert_held();
                    if let Some(cut) = cut {
                        cut(session);
                        self.proceed();
                        self.resume(holder);
                        assert!(!self.commit(holder), "a zombie, in round {round}");
                    } else {
                        self.kill(holder);
                        self.proceed();
                    }
                }
                (2, Some(cut)) => {
                    cut(session);
                    self.proceed();
                    assert!(!self.commit(holder), "after the loss, in round {round}");
                }
                _ => {
                    self.kill(holder);
                    self.proceed();
                }
            }
            // Each way of a round ends with a successor's commit.
            committed += 1;
            rivalry.assert_committed(committed);
        }
        committed
    }

    /// One that has acted and not committed, and its session.
    fn next_to_act(&mut self) -> (usize, i64) {
        let holder = self.next_holder();
        (holder, self.act(holder).expect("a holder acts"))
    }

    fn proceed(&mut self) {
        let (next, _) = self.next_to_act();
        assert!(self.commit(next), "a holder commits");
    }
}

/// In a member: the role that it plays.
///
/// # Panics
/// Where nobody has started this process as a member.
pub fn role() -> String {
    std::env::var(ROLE).expect("a process that a crew has started")
}

/// In a member: says something to the test.
pub fn say(what: &str) {
    println!("\n{OURS}{what}");
    std::io::stdout().flush().expect("a test that hears");
}

/// In a member: waits for an order; where the test is gone, the process ends.
pub fn next_order() -> String {
    let mut order = String::new();
    match std::io::stdin().read_line(&mut order) {
        Ok(1..) => order.trim_end().to_owned(),
        _ => std::process::exit(0),
    }
}
