use super::{any, echo, jobs};
use diesel::result::Error;
use diesel_async::{AsyncConnection, AsyncPgConnection, SimpleAsyncConnection as _};
use job_core::{EnqueueError, Job, JobError, Perform as _, Status};
use job_test::asynchronous::wait;
use job_test::postgres::Db;
use std::time::Duration;

const LEVELS: [&str; 3] = ["read committed", "repeatable read", "serializable"];

/// The session's level, which every transaction of the caller's has then.
async fn set_level(conn: &mut AsyncPgConnection, level: &str) {
    conn.batch_execute(&format!("SET default_transaction_isolation = '{level}'"))
        .await
        .unwrap();
}

/// Enqueues in every way.
async fn enqueue_in_every_way(conn: &mut AsyncPgConnection) -> Result<(), EnqueueError> {
    echo().enqueue_async(conn).await?;
    any().run_in(Duration::from_secs(60)).enqueue_async(conn).await?;
    any().unique("key").enqueue_async(conn).await?;
    any().unique("key").enqueue_async(conn).await?;
    let jobs = [any(), any().unique("key"), any().unique("other")];
    Job::enqueue_all_async(conn, jobs).await?;
    Ok(())
}
const WRITTEN: i64 = 5;

#[test]
fn invariant_2_what_is_enqueued_is_there_with_the_commit_and_gone_with_the_rollback() {
    for level in LEVELS {
        let db = Db::new();
        wait(async {
            let conn = &mut db.connect_async().await;
            set_level(conn, level).await;
            let rolled_back: Result<(), Error> = conn
                .transaction(async |conn| {
                    enqueue_in_every_way(conn).await?;
                    // Nobody else sees any of it yet.
                    assert_eq!(jobs(&db), 0, "{level}");
                    Err(Error::RollbackTransaction)
                })
                .await;
            assert_eq!(rolled_back, Err(Error::RollbackTransaction));
            assert_eq!(jobs(&db), 0, "{level}");
            conn.transaction(async |conn| enqueue_in_every_way(conn).await)
                .await
                .unwrap();
        });
        assert_eq!(jobs(&db), WRITTEN, "{level}");
        db.assert_invariants();
    }
}

#[test]
fn invariant_2_a_savepoint_takes_its_jobs_with_it() {
    let db = Db::new();
    wait(async {
        let conn = &mut db.connect_async().await;
        let done: Result<(), Error> = conn
            .transaction(async |conn| {
                any().unique("kept").enqueue_async(conn).await?;
                let inner: Result<(), Error> = conn
                    .transaction(async |conn| {
                        enqueue_in_every_way(conn).await?;
                        Err(Error::RollbackTransaction)
                    })
                    .await;
                assert!(inner.is_err());
                // The keys of the savepoint are free again.
                any().unique("key").enqueue_async(conn).await?;
                Ok(())
            })
            .await;
        done.unwrap();
    });
    assert_eq!(jobs(&db), 2);
    db.assert_invariants();
}

#[test]
fn changes_are_a_part_of_the_callers_transaction() {
    let db = Db::new();
    wait(async {
        let conn = &mut db.connect_async().await;
        let id = any().unique("key").enqueue_async(conn).await.unwrap().id;
        for end in [Err(Error::RollbackTransaction), Ok(())] {
            let expected = if end.is_ok() {
                Status::Cancelled
            } else {
                Status::New
            };
            let ended = conn
                .transaction(async |conn| {
                    Job::cancel_async(conn, id, "unwanted").await?;
                    Job::retry_async(conn, id).await?;
                    Job::cancel_async(conn, id, "unwanted after all").await?;
                    // A refusal costs the transaction nothing.
                    let refused = Job::cancel_async(conn, id, "again").await;
                    assert!(matches!(refused, Err(JobError::WrongStatus { .. })));
                    end
                })
                .await;
            assert_eq!(ended.is_ok(), expected == Status::Cancelled);
            assert_eq!(Job::find_async(conn, id).await.unwrap().status(), expected);
            db.assert_invariants();
        }
    });
}

/// Lets the next `times` inserts into a table meet a serialization failure. A sequence is not rolled back.
fn fail_inserts(db: &Db, table: &str, times: u32) {
    db.execute(&format!(
        "CREATE SEQUENCE inserts;
         CREATE FUNCTION fail_insert() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
             IF nextval('inserts') <= {times} THEN
                 RAISE EXCEPTION 'could not serialize access' USING ERRCODE = '40001';
             END IF;
             RETURN NEW;
         END $$;
         CREATE TRIGGER fail_insert BEFORE INSERT ON {table} FOR EACH ROW EXECUTE FUNCTION fail_insert()"
    ));
}

#[test]
fn outside_a_transaction_what_met_another_one_is_tried_again() {
    for job in [
        any,
        || any().unique("key"),
        || any().run_in(Duration::from_secs(60)),
    ] {
        let db = Db::new();
        fail_inserts(&db, "jobs", 3);
        wait(async {
            let conn = &mut db.connect_async().await;
            let id = job().enqueue_async(conn).await.unwrap().id;
            assert_eq!(Job::find_async(conn, id).await.unwrap().id, id);
        });
        assert_eq!(db.count("SELECT nextval('inserts')"), 5);
        db.assert_invariants();
    }
    let db = Db::new();
    wait(async {
        let conn = &mut db.connect_async().await;
        let id = any().enqueue_async(conn).await.unwrap().id;
        fail_inserts(&db, "jobs_finished", 3);
        Job::cancel_async(conn, id, "unwanted").await.unwrap();
        assert_eq!(
            Job::find_async(conn, id).await.unwrap().status(),
            Status::Cancelled
        );
    });
    db.assert_invariants();
}

#[test]
fn it_is_not_tried_for_ever_and_inside_a_transaction_once() {
    let db = Db::new();
    fail_inserts(&db, "jobs", 1_000_000);
    wait(async {
        let conn = &mut db.connect_async().await;
        any().enqueue_async(conn).await.unwrap_err();
        assert_eq!(db.count("SELECT nextval('inserts')"), 5);
        let done: Result<(), EnqueueError> = conn
            .transaction(async |conn| any().unique("key").enqueue_async(conn).await.map(drop))
            .await;
        assert!(matches!(done, Err(EnqueueError::Serialization)), "{done:?}");
        assert_eq!(db.count("SELECT nextval('inserts')"), 7);
    });
    assert_eq!(jobs(&db), 0);
}

#[test]
fn a_transaction_of_ours_is_read_committed_whatever_the_sessions_level() {
    for level in LEVELS {
        let db = Db::new();
        db.execute(
            "CREATE TABLE levels (level text);
             CREATE FUNCTION note() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
                 INSERT INTO levels VALUES (current_setting('transaction_isolation'));
                 RETURN NEW;
             END $$;
             CREATE TRIGGER note BEFORE INSERT ON unique_keys FOR EACH ROW EXECUTE FUNCTION note()",
        );
        wait(async {
            let conn = &mut db.connect_async().await;
            set_level(conn, level).await;
            any().unique("key").enqueue_async(conn).await.unwrap();
        });
        assert_eq!(
            db.texts("SELECT level FROM levels"),
            [Some("read committed".to_owned())]
        );
    }
}
