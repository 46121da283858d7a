//! Other processes: this test binary, run again with one test, which plays the role that its environment says.

use super::leases::manager;
use super::slots::namespace;
use super::{Conn, Db, on};
use diesel::RunQueryDsl;
use diesel::r2d2::ConnectionManager;
use job_lock::{Leader, Lock, LockError, Slot};
use std::collections::HashMap;
use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread;
use std::time::Duration;

const TTL: Duration = Duration::from_millis(400);
const ROLE: &str = "GATUN_TEST_ROLE";
/// Tells our lines from those of the test harness.
const OURS: &str = "gatun ";

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Role {
    Lease,
    Leader,
    Slot,
}

impl Role {
    pub(super) fn outlives_suspension(self) -> bool {
        self == Self::Slot
    }

    pub(super) fn outlives_its_session(self) -> bool {
        self != Self::Slot
    }
}

/// The processes, by number.
pub(super) struct Crew {
    url: String,
    space: String,
    role: Role,
    members: HashMap<usize, Member>,
    next: usize,
    lines: Receiver<(usize, String)>,
    tell: Sender<(usize, String)>,
    holders: Vec<usize>,
}

struct Member {
    process: Child,
    orders: Option<ChildStdin>,
}

impl Crew {
    pub(super) fn start(db: &Db, role: Role, size: usize) -> Self {
        let (tell, lines) = channel();
        if role != Role::Slot {
            Lock::create(&mut db.connect(), "a").unwrap();
        }
        let _ = manager(db);
        let mut crew = Self {
            url: db.url().to_owned(),
            space: namespace(db),
            role,
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
        let (_, path) = module_path!().split_once("::").unwrap();
        let mut process = Command::new(std::env::current_exe().unwrap())
            .args([
                &format!("{path}::play"),
                "--exact",
                "--ignored",
                "--nocapture",
                "--test-threads=1",
            ])
            .env(ROLE, format!("{:?} {} {}", self.role, self.url, self.space))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let number = self.next;
        self.next += 1;
        let output = BufReader::new(process.stdout.take().unwrap());
        let tell = self.tell.clone();
        thread::spawn(move || {
            for line in output.lines().map_while(Result::ok) {
                if let Some((_, ours)) = line.split_once(OURS) {
                    let _ = tell.send((number, ours.to_owned()));
                }
            }
        });
        let orders = process.stdin.take();
        self.members.insert(number, Member { process, orders });
    }

    /// Waits until somebody has it.
    pub(super) fn next_holder(&mut self) -> usize {
        while self.holders.is_empty() {
            self.hear();
        }
        self.holders.remove(0)
    }

    /// Tells one to act in a fenced transaction. The session in which it did; `None`: it has lost what it had.
    pub(super) fn act(&mut self, number: usize) -> Option<i64> {
        let orders = self.members.get_mut(&number).unwrap().orders.as_mut().unwrap();
        orders.write_all(b"act\n").unwrap();
        loop {
            let (from, line) = self.hear();
            if from == number {
                if line == "lost" {
                    return None;
                }
                if let Some(session) = line.strip_prefix("acted ") {
                    return Some(session.parse().unwrap());
                }
            }
        }
    }

    fn hear(&mut self) -> (usize, String) {
        let heard = self.lines.recv_timeout(Duration::from_secs(60));
        let (number, line) = heard.expect("a process says something within a minute");
        if line == "held" && self.members.contains_key(&number) {
            self.holders.push(number);
        }
        (number, line)
    }

    pub(super) fn kill(&mut self, number: usize) {
        let mut member = self.members.remove(&number).unwrap();
        member.process.kill().unwrap();
        member.process.wait().unwrap();
        self.holders.retain(|holder| *holder != number);
        self.hire();
    }

    pub(super) fn suspend(&self, number: usize) {
        self.signal(number, "-STOP");
    }

    pub(super) fn resume(&self, number: usize) {
        self.signal(number, "-CONT");
    }

    fn signal(&self, number: usize, signal: &str) {
        let id = self.members[&number].process.id().to_string();
        assert!(
            Command::new("kill")
                .args([signal, &id])
                .status()
                .unwrap()
                .success()
        );
    }

    pub(super) fn end(&mut self) {
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

fn say(what: &str) {
    println!("\n{OURS}{what}");
    std::io::stdout().flush().unwrap();
}

/// One fenced transaction for each order, until one fails.
fn obey(mut act: impl FnMut() -> Result<i64, LockError>) {
    say("held");
    let mut order = String::new();
    while std::io::stdin().read_line(&mut order).unwrap() > 0 {
        match act() {
            Ok(session) => say(&format!("acted {session}")),
            Err(LockError::LeaseLost(_) | LockError::SlotLost { .. }) => return say("lost"),
            Err(error) => return say(&format!("failed {error}")),
        }
    }
    std::process::exit(0);
}

fn record(conn: &mut Conn, topic: u32, claim: i64) -> Result<i64, LockError> {
    diesel::sql_query(format!(
        "INSERT INTO acts SELECT {topic}, COALESCE(MAX(n), 0) + 1, {claim} FROM acts WHERE topic = {topic}"
    ))
    .execute(conn)?;
    Ok(if on::KILL.is_some() {
        on::session_id(conn)
    } else {
        0
    })
}

#[test]
#[ignore = "it is the other process of other tests"]
fn play() {
    let role = std::env::var(ROLE).unwrap();
    let [role, url, space] = role.split(' ').collect::<Vec<_>>()[..] else {
        panic!("{role}")
    };
    let manager = Arc::new(ConnectionManager::<Conn>::new(url));
    loop {
        match role {
            "Lease" => {
                let _ = Lock::lease(&manager, "a", TTL, |lease| {
                    obey(|| lease.transaction(|conn| record(conn, 0, lease.token())));
                    Ok::<_, LockError>(())
                });
            }
            "Leader" => Leader::new(&manager, "a", TTL)
                .run(
                    || false,
                    |term| {
                        obey(|| term.transaction(|conn| record(conn, 0, term.token())));
                        Ok::<_, LockError>(())
                    },
                )
                .unwrap(),
            _ => {
                if let Some(mut slot) = Slot::claim(&manager, space, 1).unwrap() {
                    let claim = i64::from(std::process::id()) << 32 | i64::from(rand());
                    let number = slot.number();
                    obey(|| slot.transaction(|conn| record(conn, number, claim)));
                } else {
                    // It has no queue either.
                    thread::sleep(Duration::from_millis(10));
                }
            }
        }
    }
}

/// Unlike that of this process's last claim.
fn rand() -> u32 {
    use std::sync::atomic::{AtomicU32, Ordering};
    static LAST: AtomicU32 = AtomicU32::new(0);
    LAST.fetch_add(1, Ordering::SeqCst)
}
