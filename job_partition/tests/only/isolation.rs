//! Whatever level the sessions are at that a run is given.

use super::suite::items::{Item, assert_complete, assert_each_done_once, items, mark, partition};
use super::{Conn, LEVEL};
use diesel::connection::SimpleConnection;
use diesel::r2d2::{ConnectionManager, Error, ManageConnection};
use job_partition::{Cover, Key, Outcome};
use std::sync::Mutex;
use std::sync::mpsc::channel;
use std::time::Duration;

const LEVELS: [&str; 3] = ["READ UNCOMMITTED", "REPEATABLE READ", "SERIALIZABLE"];

/// Sets the level of each new connection.
struct At<'a>(ConnectionManager<Conn>, &'a str);

impl ManageConnection for At<'static> {
    type Connection = Conn;
    type Error = Error;

    fn connect(&self) -> Result<Conn, Error> {
        let mut conn = self.0.connect()?;
        conn.batch_execute(&LEVEL.replace("$LEVEL", self.1))
            .map_err(Error::QueryError)?;
        Ok(conn)
    }

    fn is_valid(&self, conn: &mut Conn) -> Result<(), Error> {
        self.0.is_valid(conn)
    }

    fn has_broken(&self, conn: &mut Conn) -> bool {
        self.0.has_broken(conn)
    }
}

#[test]
fn what_others_have_not_committed_is_neither_seen_nor_waited_for() {
    for (level, cover) in LEVELS
        .into_iter()
        .zip([Cover::Range, Cover::Modulo, Cover::Range])
    {
        let db = items(Key::Integer, 100);
        let other = &mut db.connect();
        other
            .batch_execute("BEGIN; UPDATE items SET done = 1 WHERE id = -50")
            .unwrap();
        let partition = partition(Key::Integer)
            .cover(cover)
            .partitions(8)
            .patience(Duration::ZERO);
        let report = partition
            .run(&At(db.manager(), level), |batch, conn| {
                mark(batch, conn)?;
                // Nor by a closure that sets it.
                Ok(conn.batch_execute(&LEVEL.replace("$LEVEL", LEVELS[0]))?)
            })
            .unwrap();
        assert_eq!(
            report.outcome,
            Outcome::Incomplete { busy: 1, failed: 0 },
            "{level}: {report}"
        );
        assert_eq!(report.rows, 99, "{report}");
        other.batch_execute("ROLLBACK").unwrap();
        assert_complete(&partition.run(&At(db.manager(), level), mark).unwrap(), 1);
        assert_each_done_once(&db, 100);
    }
}

#[test]
fn the_last_look_sees_what_was_committed_while_the_run_went_on() {
    for level in LEVELS {
        let db = items(Key::Integer, 100);
        let late = Mutex::new(vec![-1001, -1000]);
        let report = partition(Key::Integer)
            .partitions(1)
            .batch(60)
            .run(&At(db.manager(), level), |batch, conn| {
                mark(batch, conn)?;
                if let Some(id) = late.lock().unwrap().pop() {
                    db.execute(&format!("INSERT INTO items (id, name) VALUES ({id}, 'late')"));
                }
                Ok(())
            })
            .unwrap();
        assert_complete(&report, 102);
        assert_each_done_once(&db, 102);
    }
}

#[test]
fn what_is_left_is_counted_without_what_others_have_not_committed() {
    for level in ["READ UNCOMMITTED", "SERIALIZABLE"] {
        let db = items(Key::Integer, 10);
        let other = &mut db.connect();
        other
            .batch_execute("BEGIN; UPDATE items SET done = 1 WHERE id = -95")
            .unwrap();
        let (counted, count) = channel();
        let count = Mutex::new(Some(count));
        let report = partition(Key::Integer)
            .patience(Duration::ZERO)
            .partitions(1)
            .on_progress(move |progress| {
                if let Some(remaining) = progress.remaining {
                    let _ = counted.send(remaining);
                }
            })
            .run(&At(db.manager(), level), |batch: &[Item], conn: &mut Conn| {
                if let Some(count) = count.lock().unwrap().take() {
                    assert_eq!(count.recv()?, 10, "{level}");
                }
                mark(batch, conn)
            })
            .unwrap();
        assert_eq!(report.rows, 9, "{report}");
        assert!(report.failures.is_empty(), "{report}");
    }
}
