use super::support::{any, claimed, register};
use super::{Conn, Db, only};
use diesel::Connection;
use diesel::connection::SimpleConnection;
use diesel::result::Error;
use job_core::{EnqueueError, Job, NewJob};
use std::sync::{Barrier, mpsc};
use std::thread;

/// Holds the key in an open transaction while another enqueues it, and gives the id that each of them got.
fn held_while_another_enqueues(
    level: &str,
    end: Result<(), Error>,
    enqueue: impl Fn(&mut Conn) -> Result<i64, EnqueueError> + Send + Sync,
) -> (Db, i64, Result<i64, EnqueueError>) {
    let db = Db::new();
    let (holds, held) = mpsc::channel();
    let (first, second) = thread::scope(|scope| {
        let holder = scope.spawn(|| {
            let conn = &mut db.connect();
            let mut first = 0;
            let ended: Result<(), Error> = conn.transaction(|conn| {
                first = any().unique("key").enqueue(conn)?.id;
                holds.send(()).unwrap();
                only::wait_for_a_waiter(&db);
                end
            });
            ended.ok();
            first
        });
        held.recv().unwrap();
        let conn = &mut db.connect();
        conn.batch_execute(level).unwrap();
        let second = enqueue(conn);
        (holder.join().unwrap(), second)
    });
    db.assert_invariants();
    (db, first, second)
}

fn alone(conn: &mut Conn) -> Result<i64, EnqueueError> {
    any().unique("key").enqueue(conn).map(|job| job.id)
}

fn in_a_bulk(conn: &mut Conn) -> Result<i64, EnqueueError> {
    let jobs = [any(), any().unique("key"), any().unique("other")];
    Job::enqueue_all(conn, jobs).map(|ids| ids[1])
}

fn in_a_transaction(conn: &mut Conn) -> Result<i64, EnqueueError> {
    conn.transaction(|conn| {
        any().enqueue(conn)?;
        any().unique("key").enqueue(conn).map(|job| job.id)
    })
}

#[test]
fn case_32_the_second_waits_for_a_commit_and_gets_the_first_ones_job() {
    for enqueue in [alone, in_a_bulk] {
        for level in only::ISOLATION_LEVELS {
            let (_db, first, second) = held_while_another_enqueues(level, Ok(()), enqueue);
            assert_eq!(second.unwrap(), first, "{level}");
        }
    }
}

#[test]
fn case_32_the_second_waits_for_a_rollback_and_enqueues_its_own_job() {
    for enqueue in [alone, in_a_bulk, in_a_transaction] {
        for level in only::ISOLATION_LEVELS {
            let (db, _, second) =
                held_while_another_enqueues(level, Err(Error::RollbackTransaction), enqueue);
            let second = second.unwrap();
            let holder = db.count("SELECT job_id FROM unique_keys WHERE unique_key = 'key'");
            assert_eq!(second, holder, "{level}");
        }
    }
}

#[test]
fn case_32_inside_a_transaction_the_second_waits_too() {
    for level in only::ISOLATION_LEVELS {
        let (_db, first, second) = held_while_another_enqueues(level, Ok(()), in_a_transaction);
        match second {
            Ok(second) => assert_eq!(second, first, "{level}"),
            Err(EnqueueError::Serialization) if only::SNAPSHOT_HIDES_KEYS => {}
            Err(error) => panic!("{level}: {error}"),
        }
    }
}

#[test]
fn case_31_many_that_enqueue_the_same_key_at_once_get_one_job() {
    for level in only::ISOLATION_LEVELS {
        let db = Db::new();
        let start = Barrier::new(8);
        let ids: Vec<i64> = thread::scope(|scope| {
            let threads: Vec<_> = (0..8)
                .map(|_| {
                    scope.spawn(|| {
                        let conn = &mut db.connect();
                        conn.batch_execute(level).unwrap();
                        start.wait();
                        alone(conn).unwrap()
                    })
                })
                .collect();
            threads.into_iter().map(|thread| thread.join().unwrap()).collect()
        });
        assert!(ids.iter().all(|id| *id == ids[0]), "{level}: {ids:?}");
        assert_eq!(db.count("SELECT count(*) FROM jobs"), 1);
        db.assert_invariants();
    }
}

#[test]
fn bulks_with_the_same_keys_in_different_orders_do_not_stand_in_each_others_way() {
    let db = Db::new();
    let start = Barrier::new(4);
    thread::scope(|scope| {
        for thread in 0..4_usize {
            let (db, start) = (&db, &start);
            scope.spawn(move || {
                let conn = &mut db.connect();
                let mut jobs: Vec<NewJob> = (0..40).map(|n| any().unique(format!("key {n}"))).collect();
                if thread.is_multiple_of(2) {
                    jobs.reverse();
                }
                start.wait();
                assert_eq!(Job::enqueue_all(conn, jobs).unwrap().len(), 40);
            });
        }
    });
    assert_eq!(db.count("SELECT count(*) FROM jobs"), 40);
    db.assert_invariants();
}

#[test]
fn a_key_is_held_from_enqueue_to_the_end_whatever_the_end() {
    let db = Db::new();
    let conn = &mut db.connect();
    let worker = register(conn);
    for end in 0..4 {
        let job = claimed(conn, &worker, any().unique("key").max_attempts(1));
        assert_eq!(alone(conn).unwrap(), job.id(), "while it is performed");
        match end {
            0 => job.complete(conn, &()).map(drop).unwrap(),
            1 => job.fail(conn, "no").map(drop).unwrap(),
            2 => Job::cancel(conn, job.id(), "no").unwrap(),
            _ => {
                let completions = [(job.ticket.clone(), None)];
                job_core::complete_all(conn, worker.id, &completions).unwrap();
            }
        }
        assert_eq!(db.count("SELECT count(*) FROM unique_keys"), 0);
    }
    let job = claimed(conn, &worker, any().unique("key").max_attempts(2));
    job.fail(conn, "again").unwrap();
    assert_eq!(alone(conn).unwrap(), job.id(), "while it waits for its retry");
    db.assert_invariants();
}
