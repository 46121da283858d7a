//! Threads that get no connection, while others have one.

use super::items::{
    Item, Prepared, assert_complete, assert_done_at_most_once, assert_each_done_once, cut, items, mark,
    partition, pending, session,
};
use super::{Conn, Db, KILL};
use diesel::QueryResult;
use diesel::r2d2::ManageConnection;
use diesel::result::Error;
use job_partition::{Key, PartitionError};
use job_test::eventually;
use std::collections::HashMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// Gives so many connections, and counts those that it refuses.
fn limited(db: &Db, count: usize) -> (impl ManageConnection<Connection = Conn>, Arc<AtomicUsize>) {
    let asked = AtomicUsize::new(0);
    let refused = Arc::new(AtomicUsize::new(0));
    let refusals = refused.clone();
    let prepare = move |_: &mut Conn| -> QueryResult<()> {
        if asked.fetch_add(1, Ordering::SeqCst) < count {
            return Ok(());
        }
        refusals.fetch_add(1, Ordering::SeqCst);
        Err(Error::QueryBuilderError("too many connections".into()))
    };
    (Prepared(db.manager(), prepare), refused)
}

#[test]
fn a_thread_without_a_connection_leaves_and_the_others_complete_the_run() {
    let db = items(Key::Integer, 200);
    let (manager, refused) = limited(&db, 1);
    let report = partition(Key::Integer)
        .threads(3)
        .batch(20)
        .patience(Duration::ZERO)
        .run(&manager, |batch, conn| {
            eventually("two threads are refused", || refused.load(Ordering::SeqCst) >= 2);
            mark(batch, conn)
        })
        .unwrap();
    assert_complete(&report, 200);
    assert_each_done_once(&db, 200);
}

#[test]
fn when_no_thread_has_a_connection_the_run_ends_with_that() {
    let db = items(Key::Integer, 100);
    let (manager, refused) = limited(&db, 1);
    let batches = AtomicUsize::new(0);
    let error = partition(Key::Integer)
        .threads(2)
        .partitions(1)
        .batch(10)
        .patience(Duration::ZERO)
        .run(&manager, |batch, conn| {
            eventually("one thread is refused", || refused.load(Ordering::SeqCst) >= 1);
            // After it the connection is not used any more.
            assert!(batches.fetch_add(1, Ordering::SeqCst) < 3, "the fourth batch");
            mark(batch, conn)
        })
        .unwrap_err();
    assert!(
        matches!(&error, PartitionError::Connect(why) if why.contains("too many connections")),
        "{error}"
    );
    assert_eq!(pending(&db), 70, "three batches are done");
    assert_done_at_most_once(&db);
}

#[test]
fn a_thread_that_loses_its_connection_at_the_last_look_leaves_the_look_to_another() {
    if KILL.is_none() {
        return;
    }
    let db = Arc::new(items(Key::Integer, 100));
    let (manager, refused) = limited(&db, 2);
    let sessions = Arc::new(Mutex::new(HashMap::new()));
    let (known, other, refusals) = (sessions.clone(), db.clone(), refused.clone());
    let report = partition(Key::Integer)
        .threads(2)
        .batch(10)
        .patience(Duration::ZERO)
        .throttle(move || {
            if pending(&other) == 0 {
                // The first one to come here has nothing to do but to look. The other waits for it.
                let mine = std::mem::take(&mut *known.lock().unwrap()).remove(&std::thread::current().id());
                match mine {
                    Some(session) => cut(&other, session),
                    None => eventually("a thread is refused", || refusals.load(Ordering::SeqCst) > 0),
                }
            }
            None
        })
        .run(&manager, |batch: &[Item], conn: &mut Conn| {
            let me = std::thread::current().id();
            let number = session(conn)?;
            let count = {
                let mut sessions = sessions.lock().unwrap();
                sessions.insert(me, number);
                sessions.len()
            };
            if count < 2 {
                eventually("both threads have a batch", || sessions.lock().unwrap().len() > 1);
            }
            mark(batch, conn)
        })
        .unwrap();
    assert_complete(&report, 100);
    assert_each_done_once(&db, 100);
}

#[test]
fn a_thread_that_loses_its_connection_in_a_batch_leaves_the_partition_to_the_others() {
    if KILL.is_none() {
        return; // SQLite has no sessions that could be cut.
    }
    let db = items(Key::Integer, 100);
    let opened = Arc::new(AtomicUsize::new(0));
    let openings = opened.clone();
    let two_at_most = move |_: &mut Conn| match openings.fetch_add(1, Ordering::SeqCst) {
        0 | 1 => Ok(()),
        _ => Err(Error::QueryBuilderError("too many connections".into())),
    };
    let is_cut = AtomicUsize::new(0);
    let report = partition(Key::Integer)
        .threads(2)
        .partitions(1)
        .batch(10)
        .patience(Duration::from_secs(3600))
        .run(&Prepared(db.manager(), two_at_most), |batch, conn| {
            eventually("both have a connection", || opened.load(Ordering::SeqCst) >= 2);
            if is_cut.fetch_add(1, Ordering::SeqCst) == 0 {
                cut(&db, session(conn)?);
            }
            mark(batch, conn)
        })
        .unwrap();
    assert_complete(&report, 100);
    assert_each_done_once(&db, 100);
}
