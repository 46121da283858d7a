//! Three processes want the same lock, lease, leadership or slot, and whoever has it is killed, suspended or cut off. Each
//! acts when it is told to, in a fenced transaction.

use super::child::{Crew, Role};
use super::on;
use super::support::db_with;

/// Ten each, or as many as GATUN_KILL_ROUNDS says.
fn rounds() -> usize {
    std::env::var("GATUN_KILL_ROUNDS").map_or(10, |text| text.parse().expect("a number of rounds"))
}

fn survive(role: Role, rounds: usize) {
    let db = db_with(&[]);
    db.execute(
        "CREATE TABLE acts (topic BIGINT NOT NULL, n BIGINT NOT NULL, claim BIGINT NOT NULL, PRIMARY KEY (topic, n))",
    );
    let mut crew = Crew::start(&db, role, 3);
    for round in 0..rounds {
        let holder = crew.next_holder();
        crew.act(holder).expect("a holder acts");
        match round % 3 {
            0 => crew.kill(holder),
            1 => {
                crew.suspend(holder);
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
    survive(Role::Lease, rounds());
}

#[test]
fn nobody_acts_twice_when_leaders_are_killed_suspended_and_cut_off() {
    survive(Role::Leader, rounds());
}

#[test]
fn nobody_acts_twice_when_holders_of_a_slot_are_killed_suspended_and_cut_off() {
    // Where a slot is a lease, it ends after seconds.
    survive(Role::Slot, if on::ONE_WRITER { 1 } else { rounds() });
}
