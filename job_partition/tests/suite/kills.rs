//! Three processes want the batches of one partition, and whoever has one is killed, suspended or cut off. Each does its rows
//! and commits when it is told to.

use super::items::{
    Item, assert_done_at_most_once, assert_each_done_once, cut, items, mark, mark_as, partition, session,
};
use super::{Conn, Db, KILL};
use diesel::r2d2::ConnectionManager;
use job_partition::{Control, Key, Outcome, Partition};
use job_test::crew::{Crew, Rivalry, next_order, role, rounds, say};
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

/// A batch each.
struct Batches {
    db: Db,
}

impl Rivalry for Batches {
    fn cut(&self) -> Option<Box<dyn Fn(i64) + '_>> {
        KILL?;
        Some(Box::new(|session| cut(&self.db, session)))
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
    fn assert_committed(&self, number: i64) {
        assert_done_at_most_once(&self.db);
        let done = number * i64::from(BATCH);
        assert_eq!(self.db.count("SELECT count(*) FROM audit"), done);
        assert_eq!(self.db.count("SELECT max(item) - min(item) + 1 FROM audit"), done);
    }
}

#[test]
fn nobody_acts_twice_when_holders_of_a_batch_are_killed_suspended_and_cut_off() {
    let rounds = rounds(6);
    // At most two batches of a round are committed; what is left is done at the end.
    let rows = (2 * rounds as u64 + 2) * u64::from(BATCH);
    let batches = Batches {
        db: items(Key::Integer, rows),
    };
    // Declared after the database, so that the processes are gone when it goes.
    let mut crew = Crew::start(module_path!(), batches.db.url(), 3);
    crew.rival(&batches, rounds);
    crew.end();
    let report = one_partition().run(&batches.db.manager(), mark).unwrap();
    assert!(report.is_complete(), "{report}");
    assert_each_done_once(&batches.db, rows);
}
