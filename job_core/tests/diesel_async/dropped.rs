//! Futures that are dropped after each number of polls: no half job, and no pool hands out an open transaction.

use super::{any, jobs};
use diesel::result::Error;
use diesel_async::{AsyncConnection, AsyncPgConnection};
use job_core::{EnqueueError, Job, JobError};
use job_test::asynchronous::{Moment, drop_after, wait};
use job_test::postgres::Db;

/// More polls than any of them needs.
const ENOUGH: usize = 200;

/// What is dropped midway.
#[derive(Clone, Copy, Debug)]
enum Verb {
    Enqueue,
    EnqueueUnique,
    EnqueueAll,
    Cancel,
    Retry,
    Discard,
    /// Two jobs in the caller's transaction.
    Transaction,
}
use Verb::*;

const VERBS: [Verb; 7] = [
    Enqueue,
    EnqueueUnique,
    EnqueueAll,
    Cancel,
    Retry,
    Discard,
    Transaction,
];

/// A verb whose future is dropped.
#[derive(Clone, Copy, Debug)]
struct Case {
    verb: Verb,
    polls: usize,
    moment: Moment,
    /// The job that is changed.
    target: i64,
}

impl Case {
    fn new(db: &Db, verb: Verb, polls: usize, moment: Moment) -> Self {
        let conn = &mut db.connect();
        let key = format!("target {polls}");
        let target = any().unique(key).enqueue(conn).unwrap().id;
        if let Retry = verb {
            Job::cancel(conn, target, "to be retried").unwrap();
        }
        Case {
            verb,
            polls,
            moment,
            target,
        }
    }

    /// Whether the verb has ended, and how, before its future was dropped.
    async fn call_and_drop(self, conn: &mut AsyncPgConnection) -> Option<Result<(), Error>> {
        drop_after(self.polls, self.moment, self.call(conn)).await
    }

    async fn call(self, conn: &mut AsyncPgConnection) -> Result<(), Error> {
        let keyed = |n: i32| any().unique(format!("key {n} of {}", self.polls));
        match self.verb {
            Enqueue => any().enqueue_async(conn).await.map(drop)?,
            EnqueueUnique => keyed(0).enqueue_async(conn).await.map(drop)?,
            EnqueueAll => Job::enqueue_all_async(conn, (0..8).map(keyed)).await.map(drop)?,
            Cancel => Job::cancel_async(conn, self.target, "unwanted").await?,
            Retry => Job::retry_async(conn, self.target).await?,
            Discard => Job::discard_async(conn, self.target).await?,
            Transaction => {
                let both = async |conn: &mut AsyncPgConnection| {
                    any().enqueue_async(conn).await?;
                    keyed(0).enqueue_async(conn).await.map(drop)
                };
                conn.transaction::<_, EnqueueError, _>(both).await?;
            }
        }
        Ok(())
    }

    /// All or nothing, as it should be.
    #[track_caller]
    fn assert_whole(self, made: i64) {
        let whole = match self.verb {
            EnqueueAll => [0, 8],
            Transaction => [0, 2],
            Enqueue | EnqueueUnique => [0, 1],
            Cancel | Retry => [0, 0],
            Discard => [0, -1],
        };
        assert!(whole.contains(&made), "{self:?}: {made}");
    }
}

/// Calls `test` with each verb, and each number of polls until the verb has ended, which `test` tells.
fn at_every_poll(test: impl Fn(&Db, Case) -> bool) {
    for verb in VERBS {
        for moment in [Moment::AfterThePoll, Moment::BeforeTheNext] {
            let db = Db::new();
            let ended = (1..ENOUGH)
                .find(|&polls| test(&db, Case::new(&db, verb, polls, moment)))
                .unwrap_or_else(|| panic!("{verb:?} has no end"));
            assert!(ended > 1, "{verb:?} was never dropped midway");
            db.assert_invariants();
        }
    }
}

/// What is enqueued on this connection is seen by others at once.
async fn assert_alone(db: &Db, conn: &mut AsyncPgConnection) {
    let id = any().enqueue_async(conn).await.unwrap().id;
    let seen = db.count(&format!("SELECT count(*) FROM jobs WHERE id = {id}"));
    assert_eq!(seen, 1, "the connection has a transaction open");
}

#[test]
fn invariant_1_a_future_that_is_dropped_with_its_connection_leaves_no_half_job_in_deadpool() {
    at_every_poll(|db, case| {
        wait(async {
            let before = jobs(db);
            let pool = db.deadpool(1);
            let mut conn = pool.get().await.unwrap();
            let called = case.call_and_drop(&mut conn).await;
            drop(conn);
            assert_alone(db, &mut pool.get().await.unwrap()).await;
            case.assert_whole(jobs(db) - before - 1);
            called.is_some()
        })
    });
}

#[test]
fn invariant_1_a_future_that_is_dropped_with_its_connection_leaves_no_half_job_in_bb8() {
    at_every_poll(|db, case| {
        wait(async {
            let before = jobs(db);
            let pool = db.bb8(1).await;
            let mut conn = pool.get().await.unwrap();
            let called = case.call_and_drop(&mut conn).await;
            drop(conn);
            assert_alone(db, &mut pool.get().await.unwrap()).await;
            case.assert_whole(jobs(db) - before - 1);
            called.is_some()
        })
    });
}

/// A verb on a connection that was marked as broken.
fn is_refused<T>(done: Result<T, EnqueueError>) -> bool {
    matches!(done, Err(EnqueueError::Database(Error::BrokenTransactionManager)))
}

#[test]
fn a_connection_that_goes_on_after_a_dropped_verb_loses_nothing_unsaid() {
    at_every_poll(|db, case| {
        wait(async {
            let conn = &mut db.connect_async().await;
            let called = case.call_and_drop(conn).await;
            if let Transaction = case.verb {
                // That is the caller's own, of which Gatun may know nothing.
                return called.is_some();
            }
            match any().enqueue_async(conn).await {
                Ok(job) => {
                    let seen = db.count(&format!("SELECT count(*) FROM jobs WHERE id = {}", job.id));
                    assert_eq!(
                        seen, 1,
                        "{case:?}: it was enqueued in a transaction that was left open"
                    );
                }
                refused => {
                    assert!(is_refused(refused), "{case:?}");
                    let found = Job::find_async(conn, case.target).await;
                    let refusal = JobError::Database(Error::BrokenTransactionManager);
                    assert_eq!(found.unwrap_err().to_string(), refusal.to_string());
                }
            }
            called.is_some()
        })
    });
}

#[test]
fn a_callers_transaction_that_was_dropped_in_its_beginning_is_noticed() {
    let db = Db::new();
    wait(async {
        let conn = &mut db.connect_async().await;
        let transaction = conn.transaction(async |conn| any().enqueue_async(conn).await);
        assert!(drop_after(1, Moment::AfterThePoll, transaction).await.is_none());
        assert!(is_refused(any().enqueue_async(conn).await));
    });
    assert_eq!(jobs(&db), 0);
}

#[test]
fn invariant_1_a_callers_transaction_in_which_a_verb_was_dropped_commits_no_half_job() {
    at_every_poll(|db, case| {
        if let Transaction = case.verb {
            return case.polls > 1;
        }
        wait(async {
            let conn = &mut db.connect_async().await;
            let mut called = None;
            let committed: Result<(), Error> = conn
                .transaction(async |conn| {
                    // As under a timeout that the app takes lightly.
                    called = case.call_and_drop(conn).await;
                    Ok(())
                })
                .await;
            assert!(
                matches!(committed, Ok(()) | Err(Error::BrokenTransactionManager)),
                "{case:?}"
            );
            assert!(called.is_none() || committed.is_ok(), "{case:?}");
            called.is_some()
        })
    });
}
