use super::{any, jobs};
use diesel::Connection as _;
use diesel::result::Error;
use diesel_async::{AsyncConnection as _, SimpleAsyncConnection as _};
use job_core::{EnqueueError, Job};
use job_test::asynchronous::wait;
use job_test::postgres::Db;
use std::sync::{Barrier, mpsc};
use std::thread;

#[test]
fn invariant_2_a_duplicate_gives_the_existing_job_and_the_transaction_goes_on() {
    let db = Db::new();
    wait(async {
        let conn = &mut db.connect_async().await;
        let first = any().unique("key").enqueue_async(conn).await.unwrap();
        let done: Result<(), EnqueueError> = conn
            .transaction(async |conn| {
                let twin = any().unique("key").enqueue_async(conn).await?;
                assert_eq!(twin.id, first.id);
                let ids = Job::enqueue_all_async(conn, [any().unique("key"), any()]).await?;
                assert_eq!(ids[0], first.id);
                Ok(())
            })
            .await;
        done.unwrap();
    });
    assert_eq!(jobs(&db), 2);
    db.assert_invariants();
}

/// Waits until some session on this database waits for another's lock.
fn wait_for_a_waiter(db: &Db) {
    let sql = "SELECT count(*) FROM pg_locks l JOIN pg_class c ON c.oid = l.relation
               WHERE c.relnamespace = current_schema()::regnamespace AND cardinality(pg_blocking_pids(l.pid)) > 0";
    job_test::eventually("a session waits for a lock", || db.count(sql) > 0);
}

/// One holds the key in an open transaction while another enqueues it in its own; gives the id that each of them got. The
/// other's transaction goes on after that.
fn held_while_another_enqueues(
    db: &Db,
    level: &str,
    end: Result<(), Error>,
) -> (i64, Result<i64, EnqueueError>) {
    let (holds, held) = mpsc::channel();
    thread::scope(|scope| {
        let other = scope.spawn(move || {
            held.recv().unwrap();
            wait(async {
                let conn = &mut db.connect_async().await;
                let level = format!("SET default_transaction_isolation = '{level}'");
                conn.batch_execute(&level).await.unwrap();
                conn.transaction(async |conn| {
                    let job = any().unique("key").enqueue_async(conn).await;
                    any().enqueue_async(conn).await.expect("the transaction goes on");
                    job.map(|job| job.id)
                })
                .await
            })
        });
        let mut first = 0;
        let ended: Result<(), Error> = db.connect().transaction(|conn| {
            first = any().unique("key").enqueue(conn)?.id;
            holds.send(()).unwrap();
            wait_for_a_waiter(db);
            end
        });
        ended.ok();
        (first, other.join().unwrap())
    })
}

#[test]
fn case_32_the_second_waits_for_the_end_of_the_first_ones_transaction() {
    for level in ["read committed", "repeatable read", "serializable"] {
        let db = Db::new();
        let (first, second) = held_while_another_enqueues(&db, level, Ok(()));
        match second {
            Ok(second) => assert_eq!((second, level), (first, "read committed")),
            Err(EnqueueError::Serialization) => assert_ne!(level, "read committed"),
            Err(error) => panic!("{level}: {error}"),
        }
        db.assert_invariants();

        let db = Db::new();
        let (_, second) = held_while_another_enqueues(&db, level, Err(Error::RollbackTransaction));
        let holder = db.count("SELECT job_id FROM unique_keys WHERE unique_key = 'key'");
        assert_eq!(second.unwrap(), holder, "{level}");
        db.assert_invariants();
    }
}

#[test]
fn case_31_many_that_enqueue_the_same_key_at_once_get_one_job() {
    let db = Db::new();
    let start = Barrier::new(6);
    let enqueue = || {
        wait(async {
            let conn = &mut db.connect_async().await;
            conn.batch_execute("SET default_transaction_isolation = 'serializable'")
                .await
                .unwrap();
            start.wait();
            any().unique("key").enqueue_async(conn).await.unwrap().id
        })
    };
    let ids: Vec<i64> = thread::scope(|scope| {
        let threads: Vec<_> = (0..6).map(|_| scope.spawn(enqueue)).collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).collect()
    });
    assert!(ids.iter().all(|id| *id == ids[0]), "{ids:?}");
    assert_eq!(jobs(&db), 1);
    db.assert_invariants();
}
