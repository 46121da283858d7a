//! Three processes want the same lock, lease, leadership or slot, and whoever has it is killed, suspended or cut off. Each
//! acts when it is told to, in a fenced transaction.

use super::child::{Role, crew};
use super::support::db_with;
use super::{Db, on};
use job_lock::{Lock, LockError, Wait};
use job_test::crew::{Crew, Rivalry, rounds};

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

/// A lock that is a row, for one transaction each.
struct Acts(Db);

impl Rivalry for Acts {
    fn cut(&self) -> Option<Box<dyn Fn(i64) + '_>> {
        let kill = on::KILL?;
        Some(Box::new(move |session| {
            self.0.execute(&kill.replace("ID", &session.to_string()));
        }))
    }

    fn assert_held(&self) {
        let conn = &mut self.0.connect();
        let tried = Lock::on("a")
            .wait(Wait::No)
            .synchronize(conn, |_| Ok::<_, LockError>(()));
        assert!(matches!(tried, Err(LockError::Busy(_))), "{tried:?}");
    }

    fn assert_committed(&self, number: i64) {
        for what in ["*", "DISTINCT n", "DISTINCT claim"] {
            let acts = self.0.count(&format!("SELECT count({what}) FROM acts"));
            assert_eq!(acts, number, "{what}");
        }
        assert_eq!(self.0.count("SELECT max(n) FROM acts"), number);
    }
}

#[test]
fn nobody_acts_twice_when_holders_of_a_lock_are_killed_suspended_and_cut_off() {
    let db = db_with(&[]);
    // Nothing but the lock keeps two from being number n.
    db.execute("CREATE TABLE acts (topic BIGINT NOT NULL, n BIGINT NOT NULL, claim BIGINT NOT NULL)");
    let acts = Acts(db);
    // Declared after the database, so that the processes are gone when it goes.
    let mut crew = crew(&acts.0, Role::Lock, 3);
    crew.rival(&acts, rounds(6));
}
