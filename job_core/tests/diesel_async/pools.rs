use super::{any, echo, jobs};
use diesel::Connection;
use diesel::result::Error;
use diesel_async::AsyncConnection;
use diesel_async::AsyncPgConnection;
use diesel_async::async_connection_wrapper::AsyncConnectionWrapper;
use diesel_async::pooled_connection::{bb8, deadpool};
use job_core::{AsyncJobConnection, EnqueueError, Job, Perform as _, Status};
use job_test::asynchronous::wait;
use job_test::postgres::Db;

/// Every verb, on whatever a connection is.
async fn use_it<C: AsyncJobConnection>(conn: &mut C) -> Result<(), Error> {
    let id = echo().enqueue_async(conn).await?.id;
    any().unique("key").enqueue_async(conn).await?;
    Job::enqueue_all_async(conn, [any()]).await?;
    Job::cancel_async(conn, id, "unwanted").await?;
    Job::retry_async(conn, id).await?;
    assert_eq!(Job::find_async(conn, id).await?.status(), Status::New);
    assert_eq!(Job::filter().load_async(conn).await?.len(), 3);
    assert_eq!(Job::counts_async(conn).await?.total(), 3);
    Job::discard_async(conn, id).await?;
    Ok(())
}

#[test]
fn a_bare_connection_and_those_of_deadpool_and_bb8_have_every_verb() {
    for kind in 0..3 {
        let db = Db::new();
        wait(async {
            match kind {
                0 => use_it(&mut db.connect_async().await).await.unwrap(),
                1 => use_it(&mut db.deadpool(1).get().await.unwrap()).await.unwrap(),
                _ => use_it(&mut db.bb8(1).await.get().await.unwrap()).await.unwrap(),
            }
        });
        assert_eq!(jobs(&db), 2);
        db.assert_invariants();
    }
}

#[test]
fn a_transaction_on_a_pools_connection_has_the_job_too() {
    let db = Db::new();
    wait(async {
        let deadpool = db.deadpool(1);
        let mut conn = deadpool.get().await.unwrap();
        let job: Result<Job, EnqueueError> = conn
            .transaction(async |conn| any().unique("key").enqueue_async(conn).await)
            .await;
        job.unwrap();
        let bb8 = db.bb8(1).await;
        let mut conn = bb8.get().await.unwrap();
        let rolled_back: Result<(), Error> = conn
            .transaction(async |conn| {
                any().unique("other").enqueue_async(conn).await?;
                Err(Error::RollbackTransaction)
            })
            .await;
        rolled_back.unwrap_err();
    });
    assert_eq!(jobs(&db), 1);
    db.assert_invariants();
}

#[test]
fn the_tables_are_made_and_a_job_is_enqueued_by_a_wrapper_that_blocks() {
    let db = Db::empty();
    let conn = &mut <AsyncConnectionWrapper<AsyncPgConnection> as Connection>::establish(db.url()).unwrap();
    job_core::migrate(conn).unwrap();
    any().unique("key").enqueue(conn).unwrap();
    assert_eq!(jobs(&db), 1);
    db.assert_invariants();
}

fn is_send<T: Send>(future: T) -> T {
    future
}

/// Compiling it is the test: a handler's future is `Send`, and so is that of a generic function.
#[allow(dead_code)]
fn every_future_is_send<C: AsyncJobConnection>(
    conn: &mut C,
    pg: &mut AsyncPgConnection,
    mut deadpool: deadpool::Object<AsyncPgConnection>,
    mut bb8: bb8::PooledConnection<'static, AsyncPgConnection>,
    job: Job,
) {
    drop(is_send(echo().enqueue_async(conn)));
    drop(is_send(any().unique("key").enqueue_async(conn)));
    drop(is_send(Job::enqueue_all_async(conn, [any()])));
    drop(is_send(Job::find_async(conn, 1)));
    drop(is_send(Job::filter().load_async(conn)));
    drop(is_send(Job::counts_async(conn)));
    drop(is_send(Job::counts_in_async(conn, "post")));
    drop(is_send(job.failures_async(conn)));
    drop(is_send(Job::cancel_async(conn, 1, "unwanted")));
    drop(is_send(Job::discard_async(conn, 1)));
    drop(is_send(Job::retry_async(conn, 1)));
    drop(is_send(use_it(conn)));
    drop(is_send(use_it(pg)));
    drop(is_send(async {
        pg.transaction(async |conn| {
            any().unique("key").enqueue_async(conn).await?;
            Job::cancel_async(conn, 1, "unwanted").await?;
            Ok::<_, Error>(())
        })
        .await
    }));
    drop(is_send(async move {
        use_it(&mut deadpool).await?;
        use_it(&mut bb8).await
    }));
}
