//! Other processes: this test binary, run again with one test, which plays the role that its environment says.

use super::slots::namespace;
use super::{Conn, Db, on};
use diesel::RunQueryDsl;
use diesel::r2d2::{ConnectionManager, ManageConnection};
use job_lock::{Leader, Lock, LockError, Slot};
use job_test::crew::{Crew, next_order, role, say};
use std::sync::Arc;
use std::thread;
use std::time::Duration;

const TTL: Duration = Duration::from_millis(400);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Role {
    Lock,
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

/// Starts the processes.
pub(super) fn crew(db: &Db, role: Role, size: usize) -> Crew {
    if role != Role::Slot {
        Lock::create(&mut db.connect(), "a").unwrap();
    }
    let role = format!("{role:?} {} {}", db.url(), namespace(db));
    Crew::start(module_path!(), &role, size)
}

/// One fenced transaction for each order, until one fails.
fn obey(mut act: impl FnMut() -> Result<i64, LockError>) {
    say("held");
    loop {
        next_order();
        match act() {
            Ok(session) => say(&format!("acted {session}")),
            Err(LockError::LeaseLost(_) | LockError::SlotLost { .. }) => return say("lost"),
            Err(error) => return say(&format!("failed {error}")),
        }
    }
}

/// Acts under the lock, and commits when it is told to.
fn hold(conn: &mut Conn) {
    let mut has_acted = false;
    let held = Lock::synchronize(conn, "a", |locked| {
        say("held");
        next_order();
        let token = locked.token();
        let session = record(locked.conn(), 0, token)?;
        has_acted = true;
        say(&format!("acted {session}"));
        next_order();
        Ok::<_, LockError>(())
    });
    match held {
        Ok(()) => say("committed"),
        Err(_) if has_acted => say("lost"),
        Err(error) => say(&format!("failed {error}")),
    }
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
    let role = role();
    let [role, url, space] = role.split(' ').collect::<Vec<_>>()[..] else {
        panic!("{role}")
    };
    let manager = Arc::new(ConnectionManager::<Conn>::new(url));
    loop {
        match role {
            // What was lost was lost with its connection.
            "Lock" => hold(&mut manager.connect().unwrap()),
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
