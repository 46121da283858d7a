use super::support::{any, claimed, one_in_each_status, register};
use super::{Conn, Db, only};
use diesel::Connection;
use diesel::connection::SimpleConnection;
use diesel::result::Error;
use job_core::{EnqueueError, Job, JobError, Status};
use job_db::transaction_depth;
use std::time::Duration;

fn jobs(db: &Db) -> i64 {
    db.count("SELECT count(*) FROM jobs")
}

/// Enqueues in every way.
fn enqueue_in_every_way(conn: &mut Conn) -> Result<(), EnqueueError> {
    any().enqueue(conn)?;
    any().run_in(Duration::from_secs(60)).enqueue(conn)?;
    any().unique("key").enqueue(conn)?;
    any().unique("key").enqueue(conn)?;
    Job::enqueue_all(conn, [any(), any().unique("key"), any().unique("other")])?;
    Ok(())
}
const WRITTEN: i64 = 5;

#[test]
fn invariant_2_what_is_enqueued_is_there_with_the_commit_and_gone_with_the_rollback() {
    for level in only::ISOLATION_LEVELS {
        let db = Db::new();
        let conn = &mut db.connect();
        conn.batch_execute(level).unwrap();
        let rolled_back: Result<(), Error> = conn.transaction(|conn| {
            enqueue_in_every_way(conn)?;
            assert_eq!(transaction_depth(conn), 1);
            // Nobody else sees any of it yet.
            assert_eq!(jobs(&db), 0, "{level}");
            Err(Error::RollbackTransaction)
        });
        assert_eq!(rolled_back, Err(Error::RollbackTransaction));
        assert_eq!(jobs(&db), 0, "{level}");
        db.assert_invariants();
        conn.transaction(enqueue_in_every_way).unwrap();
        assert_eq!(jobs(&db), WRITTEN, "{level}");
        db.assert_invariants();
    }
}

#[test]
fn invariant_2_a_savepoint_takes_its_jobs_with_it() {
    for level in only::ISOLATION_LEVELS {
        let db = Db::new();
        let conn = &mut db.connect();
        conn.batch_execute(level).unwrap();
        conn.transaction(|conn| {
            any().unique("kept").enqueue(conn)?;
            let inner: Result<(), Error> = conn.transaction(|conn| {
                enqueue_in_every_way(conn)?;
                Err(Error::RollbackTransaction)
            });
            assert!(inner.is_err());
            // The keys of the savepoint are free again.
            any().unique("key").enqueue(conn)?;
            Ok::<_, Error>(())
        })
        .unwrap();
        assert_eq!(jobs(&db), 2, "{level}");
        db.assert_invariants();
    }
}

#[test]
fn invariant_2_a_duplicate_gives_the_existing_job_and_the_transaction_goes_on() {
    for level in only::ISOLATION_LEVELS {
        let db = Db::new();
        let conn = &mut db.connect();
        conn.batch_execute(level).unwrap();
        let first = any().unique("key").enqueue(conn).unwrap();
        conn.transaction(|conn| {
            let twin = any().unique("key").enqueue(conn)?;
            assert_eq!(twin.id, first.id, "{level}");
            assert_eq!(Job::enqueue_all(conn, [any().unique("key")])?, [first.id]);
            any().enqueue(conn)?;
            Ok::<_, Error>(())
        })
        .unwrap();
        assert_eq!(jobs(&db), 2, "{level}");
        db.assert_invariants();
    }
}

#[test]
fn invariant_2_a_duplicate_that_the_snapshot_hides_is_an_error_that_may_be_swallowed_or_the_job() {
    for level in only::SNAPSHOT_LEVELS {
        let db = Db::new();
        let conn = &mut db.connect();
        conn.batch_execute(level).unwrap();
        conn.transaction(|conn| {
            // The snapshot is taken; then somebody else takes the key.
            assert_eq!(Job::counts(conn)?.total(), 0);
            let other = any().unique("key").enqueue(&mut db.connect())?;
            for result in [
                any().unique("key").enqueue(conn).map(|job| job.id),
                Job::enqueue_all(conn, [any(), any().unique("key")]).map(|ids| ids[1]),
            ] {
                match result {
                    Ok(id) => assert_eq!((id, only::SNAPSHOT_HIDES_KEYS), (other.id, false)),
                    Err(EnqueueError::Serialization) if only::SNAPSHOT_HIDES_KEYS => {}
                    Err(error) => panic!("{error}"),
                }
            }
            any().unique("free").enqueue(conn)?;
            Ok::<_, Error>(())
        })
        .unwrap();
        assert_eq!(
            jobs(&db),
            if only::SNAPSHOT_HIDES_KEYS { 2 } else { 3 },
            "{level}"
        );
        db.assert_invariants();
    }
}

#[test]
fn invariant_3_a_claim_refuses_to_be_part_of_a_transaction() {
    let db = Db::new();
    let conn = &mut db.connect();
    let worker = register(conn);
    let job = any().enqueue(conn).unwrap();
    conn.transaction(|conn| {
        let claim = Job::find_new_job(conn, &worker);
        assert!(matches!(claim, Err(JobError::InTransaction)), "{claim:?}");
        let request = job_core::ClaimRequest {
            worker: worker.id,
            queue: "default",
            priority: 0,
            after: 0,
            kinds: &worker.kinds,
            limit: 1,
        };
        let claim = job_core::claim(conn, &request);
        assert!(matches!(claim, Err(JobError::InTransaction)), "{claim:?}");
        Ok::<_, Error>(())
    })
    .unwrap();
    assert_eq!(Job::find(conn, job.id).unwrap().status(), Status::New);
    db.assert_invariants();
}

#[test]
fn invariant_3_nothing_stays_open_after_a_claim() {
    let db = Db::new();
    let conn = &mut db.connect();
    let worker = register(conn);
    assert!(Job::find_new_job(conn, &worker).unwrap().is_none());
    assert_eq!(transaction_depth(conn), 0);
    let job = claimed(conn, &worker, any());
    assert_eq!(transaction_depth(conn), 0);
    // Others see it, so it is committed.
    assert_eq!(
        Job::find(&mut db.connect(), job.id()).unwrap().status(),
        Status::Processing
    );
    db.assert_invariants();
}

#[test]
fn invariant_1_every_verb_leaves_each_job_in_one_table_also_when_the_transaction_fails() {
    type Verb = (&'static str, fn(&mut Conn, i64) -> Result<(), JobError>);
    let verbs: [Verb; 5] = [
        ("cancel", |conn, id| Job::cancel(conn, id, "why")),
        ("discard", Job::discard),
        ("retry", Job::retry),
        ("promote", |conn, _| {
            job_core::housekeeping::promote(conn, 10).map(drop)
        }),
        ("rescue", |conn, _| {
            job_core::housekeeping::rescue(conn, 10).map(drop)
        }),
    ];
    let db = Db::new();
    let conn = &mut db.connect();
    let ids = one_in_each_status(conn);
    db.execute(&format!(
        "DELETE FROM workers; UPDATE jobs_scheduled SET run_at = {}",
        only::PAST
    ));
    let before = Job::counts(conn).unwrap();
    for (name, verb) in verbs {
        for id in ids {
            let result: Result<(), JobError> = conn.transaction(|conn| {
                // A verb that is refused must not break the transaction either.
                let _ = verb(conn, id);
                let inside = Job::counts(conn)?;
                db.assert_invariants();
                assert!(inside.total() >= before.total() - 1, "{name}");
                Err(Error::RollbackTransaction.into())
            });
            assert!(
                matches!(result, Err(JobError::Database(Error::RollbackTransaction))),
                "{result:?}"
            );
            assert_eq!(Job::counts(conn).unwrap(), before, "{name}");
            db.assert_invariants();
        }
    }
    for (name, verb) in verbs {
        for id in ids {
            let _ = verb(conn, id);
            assert_eq!(transaction_depth(conn), 0, "{name}");
            db.assert_invariants();
        }
    }
}
