//! Three processes want the same lock, lease, leadership or slot, and whoever has it is killed, suspended or cut off. Each
//! acts when it is told to, in a fenced transaction.

use super::child::{Role, crew};
use super::support::db_with;
use super::{Db, on};
use job_lock::{Lock, LockError, Wait};
use job_test::crew::{Crew, rounds};

/// Suspends one that is not in the middle of a write that keeps everybody out of a file: its renewal, after what it was
/// told to do.
fn suspend(crew: &Crew, db: &Db, holder: usize) {
    crew.suspend(holder);
    while !on::may_write(db) {
        crew.resume(holder);
        on::may_write(db);
        crew.suspend(holder);
    }
}

fn survive(role: Role, rounds: usize) {
    let db = db_with(&[]);
    db.execute(
        "CREATE TABLE acts (topic BIGINT NOT NULL, n BIGINT NOT NULL, claim BIGINT NOT NULL, PRIMARY KEY (topic, n))",
    );
    let mut crew = crew(&db, role, 3);
    for round in 0..rounds {
        let holder = crew.next_holder();
        crew.act(holder).expect("a holder acts");
        match round % 3 {
            0 => crew.kill(holder),
            1 => {
                suspend(&crew, &db, holder);
                if role.outlives_suspension() {
                    crew.resume(holder);
                    crew.act(holder).expect("a session does not end by a suspension");
                    crew.kill(holder);
                } else {
                    let next = crew.next_holder();
                    crew.act(next).expect("the successor acts");
                    crew.resume(holder);
                    assert!(crew.act(holder).is_none(), "a zombie has acted in round {round}");
                    crew.kill(next);
                }
            }
            _ => {
                let Some(kill) = on::KILL else {
                    crew.kill(holder);
                    continue;
                };
                let session = crew.act(holder).expect("a holder acts");
                db.execute(&kill.replace("ID", &session.to_string()));
                if role.outlives_its_session() {
                    crew.act(holder).expect("a lease outlives a connection");
                    crew.kill(holder);
                } else {
                    assert!(
                        crew.act(holder).is_none(),
                        "acted after the loss in round {round}"
                    );
                }
            }
        }
    }
    crew.end();
    // Nobody has acted again after a successor has.
    let again = db.count(
        "SELECT count(*) FROM acts a JOIN acts b ON b.topic = a.topic AND b.n = a.n + 1
         WHERE a.claim <> b.claim AND EXISTS (
           SELECT 1 FROM acts c WHERE c.topic = a.topic AND c.claim = a.claim AND c.n > b.n)",
    );
    assert_eq!(again, 0);
    assert!(db.count("SELECT count(DISTINCT claim) FROM acts") > rounds as i64 / 2);
}

#[test]
fn nobody_acts_twice_when_holders_of_a_lease_are_killed_suspended_and_cut_off() {
    survive(Role::Lease, rounds(10));
}

#[test]
fn nobody_acts_twice_when_leaders_are_killed_suspended_and_cut_off() {
    survive(Role::Leader, rounds(10));
}

#[test]
fn nobody_acts_twice_when_holders_of_a_slot_are_killed_suspended_and_cut_off() {
    // Where a slot is a lease, it ends after seconds.
    survive(Role::Slot, if on::ONE_WRITER { 1 } else { rounds(10) });
}

/// A crew that wants a lock that is a row, each for one transaction.
struct Rivals {
    // In this order, so that the processes are gone when the database goes.
    crew: Crew,
    db: Db,
    committed: i64,
}

impl Rivals {
    fn start() -> Self {
        let db = db_with(&[]);
        // Nothing but the lock keeps two from being number n.
        db.execute("CREATE TABLE acts (topic BIGINT NOT NULL, n BIGINT NOT NULL, claim BIGINT NOT NULL)");
        let crew = crew(&db, Role::Lock, 3);
        let committed = 0;
        Self { crew, db, committed }
    }

    /// One that has acted and not committed, and its session.
    fn next_holder(&mut self) -> (usize, i64) {
        let holder = self.crew.next_holder();
        (holder, self.crew.act(holder).expect("a holder acts"))
    }

    fn commit(&mut self, holder: usize) {
        assert!(self.crew.commit(holder), "a holder commits");
        self.committed += 1;
    }

    fn proceed(&mut self) {
        let (next, _) = self.next_holder();
        self.commit(next);
    }

    fn cut(&self, session: i64) {
        let kill = on::KILL.expect("a server");
        self.db.execute(&kill.replace("ID", &session.to_string()));
    }

    fn assert_held(&self) {
        let conn = &mut self.db.connect();
        let tried = Lock::on("a")
            .wait(Wait::No)
            .synchronize(conn, |_| Ok::<_, LockError>(()));
        assert!(matches!(tried, Err(LockError::Busy(_))), "{tried:?}");
    }

    fn assert_each_acted_once(&self) {
        for what in ["*", "DISTINCT n", "DISTINCT claim"] {
            let acts = self.db.count(&format!("SELECT count({what}) FROM acts"));
            assert_eq!(acts, self.committed, "{what}");
        }
        assert_eq!(self.db.count("SELECT max(n) FROM acts"), self.committed);
    }
}

#[test]
fn nobody_acts_twice_when_holders_of_a_lock_are_killed_suspended_and_cut_off() {
    let mut rivals = Rivals::start();
    for round in 0..rounds(6) {
        let (holder, session) = rivals.next_holder();
        match round % 3 {
            1 => {
                // Its session is there as long as nobody ends it.
                rivals.crew.suspend(holder);
                rivals.assert_held();
                rivals.crew.resume(holder);
                rivals.commit(holder);
                let (holder, session) = rivals.next_holder();
                rivals.crew.suspend(holder);
                rivals.assert_held();
                if on::KILL.is_some() {
                    rivals.cut(session);
                    rivals.proceed();
                    rivals.crew.resume(holder);
                    assert!(!rivals.crew.commit(holder), "a zombie, in round {round}");
                } else {
                    rivals.crew.kill(holder);
                    rivals.proceed();
                }
            }
            2 if on::KILL.is_some() => {
                rivals.cut(session);
                rivals.proceed();
                assert!(!rivals.crew.commit(holder), "after the loss, in round {round}");
            }
            _ => {
                rivals.crew.kill(holder);
                rivals.proceed();
            }
        }
        rivals.assert_each_acted_once();
    }
}
