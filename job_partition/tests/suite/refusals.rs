//! Rows that the database refuses again and again, after the closure has done them.

use super::items::{Item, assert_done_at_most_once, cut, has, items, mark, partition, pending, session};
use super::{Conn, KILL, LOCKED_TABLE, REFUSE_AT_COMMIT, SHORT_IDLE};
use diesel::connection::SimpleConnection;
use job_partition::{Control, Failures, Key, KeyValue, Outcome, Report};
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc::sync_channel;
use std::time::Duration;

#[track_caller]
fn assert_one_failed(report: &Report, row: i64) {
    assert_eq!(
        report.outcome,
        Outcome::Incomplete { busy: 0, failed: 1 },
        "{report}"
    );
    assert_eq!(report.failures[0].key, KeyValue::Integer(row));
}

#[test]
fn a_row_that_is_refused_at_commit_fails_alone() {
    let Some(trigger) = REFUSE_AT_COMMIT else { return };
    let db = items(Key::Integer, 40);
    db.connect().batch_execute(trigger).unwrap();
    let report = partition(Key::Integer)
        .batch(4)
        .partitions(2)
        .run(&db.manager(), mark)
        .unwrap();
    assert_one_failed(&report, -77);
    assert_eq!((report.rows, pending(&db)), (39, 1));
    assert_done_at_most_once(&db);
}

#[test]
fn a_row_that_no_session_lives_through_fails_alone() {
    let Some((short, time)) = SHORT_IDLE else { return };
    let db = items(Key::Integer, 40);
    let report = partition(Key::Integer)
        .batch(2)
        .partitions(2)
        .run(&db.manager(), |batch, conn: &mut Conn| {
            mark(batch, conn)?;
            if has(batch, -77) {
                conn.batch_execute(short)?;
                // Nothing tells when the server has cut it, but that it does not answer.
                std::thread::sleep(time);
            }
            Ok(())
        })
        .unwrap();
    assert_one_failed(&report, -77);
    assert_eq!((report.rows, pending(&db)), (39, 1));
    assert_done_at_most_once(&db);
}

#[test]
fn a_lost_session_whose_errors_the_closure_swallows_is_tried_again() {
    if KILL.is_none() {
        return;
    }
    let db = items(Key::Integer, 60);
    let calls = AtomicUsize::new(0);
    let report = partition(Key::Integer)
        .batch(20)
        .run(&db.manager(), |batch: &[Item], conn: &mut Conn| {
            if calls.fetch_add(1, Ordering::SeqCst) == 0 {
                cut(&db, session(conn)?);
            }
            // By a savepoint, too, as a closure may have one.
            let _ = diesel::Connection::transaction(conn, |conn| mark(batch, conn));
            Ok(())
        })
        .unwrap();
    super::items::assert_complete(&report, 60);
    assert!(report.retries >= 1, "{report}");
    super::items::assert_each_done_once(&db, 60);
}

#[test]
fn nothing_is_begun_while_it_is_paused_in_the_middle_of_halving() {
    let db = items(Key::Integer, 16);
    let control = Control::new();
    let is_resumed = AtomicBool::new(false);
    let (paused, resume) = sync_channel(1);
    std::thread::scope(|scope| {
        let (control, is_resumed) = (&control, &is_resumed);
        scope.spawn(move || {
            resume.recv().unwrap();
            // Time in which halves would be begun.
            std::thread::sleep(Duration::from_millis(200));
            is_resumed.store(true, Ordering::SeqCst);
            control.resume();
        });
        let early = AtomicUsize::new(0);
        let calls = AtomicUsize::new(0);
        let report = partition(Key::Integer)
            .partitions(1)
            .control(control)
            .run(&db.manager(), |_: &[Item], _| {
                if calls.fetch_add(1, Ordering::SeqCst) == 0 {
                    control.pause();
                    paused.send(()).unwrap();
                } else if !is_resumed.load(Ordering::SeqCst) {
                    early.fetch_add(1, Ordering::SeqCst);
                }
                anyhow::bail!("poison")
            })
            .unwrap();
        assert_eq!(report.failures.len(), 16);
        assert_eq!(early.into_inner(), 0, "calls while it was paused");
    });
}

#[test]
fn the_throttle_is_asked_before_each_half_and_each_try() {
    for error in [|| anyhow::anyhow!("poison"), refusal] {
        let db = items(Key::Integer, 4);
        let asked = std::sync::Arc::new(Mutex::new(0));
        let (throttle, calls) = (asked.clone(), AtomicUsize::new(0));
        let report = partition(Key::Integer)
            .partitions(1)
            .max_failures(Failures::Count(10))
            .throttle(move || {
                *throttle.lock().unwrap() += 1;
                None
            })
            .run(&db.manager(), |_: &[Item], _| {
                calls.fetch_add(1, Ordering::SeqCst);
                assert!(calls.load(Ordering::SeqCst) <= *asked.lock().unwrap());
                Err(error())
            })
            .unwrap();
        assert_eq!(report.failures.len(), 4);
        assert!(
            report.failures.iter().all(|row| !row.error.contains("panicked")),
            "{report}"
        );
    }
}

/// What any database says that another try may heal.
fn refusal() -> anyhow::Error {
    anyhow::Error::from(diesel::result::Error::DatabaseError(
        diesel::result::DatabaseErrorKind::SerializationFailure,
        Box::new("refused".to_owned()),
    ))
}

/// The pauses between tries grow: all of them at each level of the halving would take seconds for one row.
#[test]
fn a_row_that_is_refused_for_ever_has_all_tries_as_a_batch_and_alone_and_few_between() {
    let db = items(Key::Integer, 64);
    let sizes = Mutex::new(Vec::new());
    let report = partition(Key::Integer)
        .partitions(1)
        .run(&db.manager(), |batch: &[Item], conn: &mut Conn| {
            mark(batch, conn)?;
            if has(batch, -77) {
                sizes.lock().unwrap().push(batch.len());
                return Err(refusal());
            }
            Ok(())
        })
        .unwrap();
    assert_one_failed(&report, -77);
    assert_eq!((report.rows, pending(&db)), (63, 1));
    let sizes = sizes.into_inner().unwrap();
    let tries = |rows| sizes.iter().filter(|size| **size == rows).count();
    assert_eq!([64, 32, 16, 8, 4, 2, 1].map(tries), [9, 3, 3, 3, 3, 3, 9]);
    assert_done_at_most_once(&db);
}

#[test]
fn a_row_that_another_try_heals_is_done_also_after_halving() {
    let db = items(Key::Integer, 8);
    let alone = AtomicUsize::new(0);
    let report = partition(Key::Integer)
        .partitions(1)
        .run(&db.manager(), |batch: &[Item], conn: &mut Conn| {
            mark(batch, conn)?;
            let is_refused = has(batch, -97) && (batch.len() > 1 || alone.fetch_add(1, Ordering::SeqCst) < 8);
            if is_refused { Err(refusal()) } else { Ok(()) }
        })
        .unwrap();
    super::items::assert_complete(&report, 8);
    super::items::assert_each_done_once(&db, 8);
}

/// A half may be refused for another reason than the whole was.
#[test]
fn a_half_of_a_batch_that_failed_by_itself_has_all_tries() {
    let db = items(Key::Integer, 8);
    let halves = AtomicUsize::new(0);
    let report = partition(Key::Integer)
        .partitions(1)
        .run(&db.manager(), |batch: &[Item], conn: &mut Conn| {
            mark(batch, conn)?;
            anyhow::ensure!(batch.len() < 8, "too many at once");
            if has(batch, -97) && halves.fetch_add(1, Ordering::SeqCst) < 8 {
                return Err(refusal());
            }
            Ok(())
        })
        .unwrap();
    super::items::assert_complete(&report, 8);
    assert_eq!((report.batches, report.retries), (2, 8), "{report}");
}

#[test]
fn a_table_that_stays_locked_is_busy_and_no_error() {
    let Some((impatient, lock, waiting)) = LOCKED_TABLE else {
        return;
    };
    let db = items(Key::Integer, 40);
    let (begun, is_begun) = sync_channel(1);
    let (end, is_at_end) = sync_channel::<()>(1);
    let report = std::thread::scope(|scope| {
        let db = &db;
        scope.spawn(move || {
            let conn = &mut db.connect();
            is_begun.recv().unwrap();
            conn.batch_execute(&format!("BEGIN; {lock}")).unwrap();
            let _ = is_at_end.recv();
        });
        let report = partition(Key::Integer)
            .partitions(1)
            .batch(10)
            .patience(Duration::ZERO)
            .run(&db.manager(), |batch, conn: &mut Conn| {
                mark(batch, conn)?;
                conn.batch_execute(impatient)?;
                begun.send(())?;
                job_test::eventually("it waits for the table", || db.count(waiting) > 0);
                Ok(())
            });
        drop(end);
        report
    });
    let report = report.unwrap();
    assert_eq!(
        report.outcome,
        Outcome::Incomplete { busy: 1, failed: 0 },
        "{report}"
    );
    assert_eq!((report.rows, pending(&db)), (10, 30));
    // Once the table is free, the next run does the rest.
    assert!(
        partition(Key::Integer)
            .run(&db.manager(), mark)
            .unwrap()
            .is_complete()
    );
    assert_done_at_most_once(&db);
}
