//! Three processes want the batches of one partition, and whoever has one is killed, suspended or cut off. Each does its rows
//! and commits when it is told to.

use super::items::{
    Item, assert_done_at_most_once, assert_each_done_once, cut, items, mark, mark_as, partition, session,
};
use super::{Conn, Db, KILL};
use diesel::r2d2::ConnectionManager;
use job_partition::{Control, Key, Outcome, Partition};
use job_test::crew::{Crew, next_order, role, rounds, say};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

const BATCH: u32 = 5;

/// All rows are of one partition, so that who has its lock excludes everybody.
fn one_partition() -> Partition {
    partition(Key::Integer).partitions(1).batch(BATCH as usize)
}

#[test]
#[ignore = "it is the other process of other tests"]
fn play() {
    let manager = ConnectionManager::<Conn>::new(role());
    let name = std::process::id().to_string();
    loop {
        let (control, has_acted) = (Control::new(), AtomicBool::new(false));
        let report = one_partition()
            .control(&control)
            .run(&manager, |batch: &[Item], conn: &mut Conn| {
                // One batch, and not again what could not be committed.
                control.stop();
                say("held");
                next_order();
                mark_as(&name, batch, conn)?;
                has_acted.store(true, Ordering::SeqCst);
                say(&format!("acted {}", session(conn)?));
                next_order();
                Ok(())
            })
            .unwrap();
        match report.rows {
            rows if rows == u64::from(BATCH) => say("committed"),
            0 if has_acted.into_inner() => say("lost"),
            _ => say(&format!("failed {report}")),
        }
    }
}

/// A crew that wants a batch each.
struct Rivals {
    // In this order, so that the processes are gone when the database goes.
    crew: Crew,
    db: Db,
    committed: u32,
}

impl Rivals {
    fn start(rows: u64) -> Self {
        let db = items(Key::Integer, rows);
        let crew = Crew::start(module_path!(), db.url(), 3);
        let committed = 0;
        Self { crew, db, committed }
    }

    /// One that has done its batch and not committed it, and its session.
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

    fn assert_held(&self) {
        let report = one_partition()
            .patience(Duration::ZERO)
            .run(&self.db.manager(), mark)
            .unwrap();
        assert_eq!(
            report.outcome,
            Outcome::Incomplete { busy: 1, failed: 0 },
            "{report}"
        );
        assert_eq!(report.rows, 0, "{report}");
    }

    /// The rows that one has lost were done by the next, and no others before them.
    fn assert_each_done_once(&self) {
        assert_done_at_most_once(&self.db);
        let done = i64::from(self.committed * BATCH);
        assert_eq!(self.db.count("SELECT count(*) FROM audit"), done);
        assert_eq!(self.db.count("SELECT max(item) - min(item) + 1 FROM audit"), done);
    }
}

#[test]
fn nobody_acts_twice_when_holders_of_a_batch_are_killed_suspended_and_cut_off() {
    let rounds = rounds(6);
    // At most two batches of a round are committed; what is left is done at the end.
    let rows = (2 * rounds as u64 + 2) * u64::from(BATCH);
    let mut rivals = Rivals::start(rows);
    for round in 0..rounds {
        let (holder, number) = rivals.next_holder();
        match round % 3 {
            1 => {
                // Its session is there as long as nobody ends it.
                rivals.crew.suspend(holder);
                rivals.assert_held();
                rivals.crew.resume(holder);
                rivals.commit(holder);
                let (holder, number) = rivals.next_holder();
                rivals.crew.suspend(holder);
                rivals.assert_held();
                if KILL.is_some() {
                    cut(&rivals.db, number);
                    rivals.proceed();
                    rivals.crew.resume(holder);
                    assert!(!rivals.crew.commit(holder), "a zombie, in round {round}");
                } else {
                    rivals.crew.kill(holder);
                    rivals.proceed();
                }
            }
            2 if KILL.is_some() => {
                cut(&rivals.db, number);
                rivals.proceed();
                assert!(!rivals.crew.commit(holder), "after the loss, in round {round}");
            }
            _ => {
                rivals.crew.kill(holder);
                rivals.proceed();
            }
        }
        rivals.assert_each_done_once();
    }
    rivals.crew.end();
    let report = one_partition().run(&rivals.db.manager(), mark).unwrap();
    assert!(report.is_complete(), "{report}");
    assert_each_done_once(&rivals.db, rows);
}
