//! What async jobs do with connections of the worker's pool.

use super::scene::{Gate, call, caller, hasty};
use super::stage::{await_status, find, start};
use super::transactions::{db, effect, effects};
use super::{Conn, Db};
use anyhow::ensure;
use crossbeam_channel::bounded;
use job_core::{Job, Status, WorkerRow};
use job_test::eventually;
use serde_json::{Value, json};

#[test]
fn an_effect_of_an_async_job_and_its_completion_are_one() {
    let db = db();
    let names = ["paid", "refused", "swallowed", "panics"].map(|name| call(name).max_attempts(1));
    let ids = Job::enqueue_all(&mut db.connect(), names).unwrap();
    let report = caller(&db, |name, run| async move {
        let id = run.job_id();
        let said = name.clone();
        let done = run
            .transaction(move |conn: &mut Conn| {
                effect(conn, id)?;
                ensure!(said == "paid", "the bank said no");
                Ok(json!(said))
            })
            .await;
        assert_eq!(run.is_recorded(), done.is_ok());
        match name.as_str() {
            "swallowed" => Ok(json!("never mind")),
            "panics" => {
                run.connection(|_: &mut Conn| -> anyhow::Result<Value> { panic!("in the closure") })
                    .await
            }
            _ => done,
        }
    })
    .run_until_idle()
    .unwrap();
    assert_eq!((report.completed, report.failed, effects(&db)), (2, 2, 1));
    let job = |at: usize| find(&db, ids[at]);
    assert_eq!(job(0).output::<Value>().unwrap(), json!("paid"));
    assert_eq!(job(1).last_error(), Some("the bank said no"));
    assert_eq!(job(2).output::<Value>().unwrap(), json!("never mind"));
    assert_eq!(job(3).last_error(), Some("panicked: in the closure"));
    db.assert_invariants();
}

#[test]
fn a_job_that_has_completed_in_its_transaction_is_not_taken_for_lost() {
    let db = db();
    let conn = &mut db.connect();
    let id = call("goes on").enqueue(conn).unwrap().id;
    let gate = Gate::closed();
    let inside = gate.clone();
    let started = start(caller(&db, move |_, run| {
        let gate = inside.clone();
        async move {
            let value = run.transaction(|_: &mut Conn| Ok(json!("recorded"))).await?;
            gate.pass().await;
            Ok(value)
        }
    }));
    await_status(&db, id, Status::Completed);
    // Long enough for the worker to ask what it holds.
    for _ in 0..6 {
        let beat = WorkerRow::list(conn).unwrap()[0].beat_at;
        eventually("it beats", || WorkerRow::list(conn).unwrap()[0].beat_at > beat);
    }
    gate.open();
    let report = started.stop();
    assert_eq!((report.completed, report.refused), (1, 0));
    db.assert_invariants();
}

#[test]
fn a_transaction_of_an_async_job_that_was_cancelled_is_undone() {
    let db = db();
    let conn = &mut db.connect();
    let id = call("late").enqueue(conn).unwrap().id;
    let (began, begun) = bounded::<()>(0);
    let (go, gone) = bounded::<()>(0);
    let started = start(
        caller(&db, move |_, run| {
            let (began, gone) = (began.clone(), gone.clone());
            async move {
                let id = run.job_id();
                // Not yet in the transaction: on SQLite it would keep the one who cancels waiting.
                run.connection(move |_: &mut Conn| {
                    began.send(())?;
                    Ok(gone.recv()?)
                })
                .await?;
                run.transaction(move |conn: &mut Conn| {
                    effect(conn, id)?;
                    Ok(json!(null))
                })
                .await
            }
        })
        // So that it is the fence that stops it, and not a beat.
        .heartbeat(std::time::Duration::from_secs(3))
        .rescue_after(std::time::Duration::from_secs(30)),
    );
    begun.recv().unwrap();
    Job::cancel(conn, id, "too late").unwrap();
    go.send(()).unwrap();
    let report = started.stop();
    assert_eq!((report.completed, report.refused, report.abandoned), (0, 1, 0));
    assert_eq!((find(&db, id).status(), effects(&db)), (Status::Cancelled, 0));
    db.assert_invariants();
}

/// What has begun goes on after the timeout; the fence lets one of the two outcomes stand.
#[test]
fn a_timeout_and_a_transaction_never_both_count() {
    let db = db();
    let conn = &mut db.connect();
    let ids = Job::enqueue_all(conn, (0..40).map(|_| hasty("race"))).unwrap();
    caller(&db, |_, run| async move {
        let id = run.job_id();
        let wait = std::time::Duration::from_millis(20 + id.unsigned_abs() % 20);
        tokio::time::sleep(wait).await;
        run.transaction(move |conn: &mut Conn| {
            effect(conn, id)?;
            Ok(json!(id))
        })
        .await
    })
    .pool_size(4)
    .run_until_idle()
    .unwrap();
    for id in ids {
        let job = find(&db, id);
        let effect = db.count(&format!("SELECT count(*) FROM effects WHERE job_id = {id}"));
        let expected = match job.status() {
            Status::Completed => 1,
            Status::Failed => 0,
            status => panic!("job {id} is {status}"),
        };
        assert_eq!(effect, expected, "{:?}", job.last_error());
    }
    db.assert_invariants();
}

#[test]
fn many_async_jobs_take_turns_at_few_connections() {
    let db = db();
    let conn = &mut db.connect();
    Job::enqueue_all(conn, (0..200).map(|_| call("pay"))).unwrap();
    let report = caller(&db, |_, run| async move {
        let id = run.job_id();
        run.transaction(move |conn: &mut Conn| {
            effect(conn, id)?;
            Ok(json!(null))
        })
        .await
    })
    .pool_size(2)
    .run_until_idle()
    .unwrap();
    assert_eq!((report.completed, effects(&db)), (200, 200));
    db.assert_invariants();
}

#[test]
fn an_async_closure_that_asks_for_another_type_of_connection_is_told_the_right_one() {
    let db = Db::new();
    let job = call("wrong").enqueue(&mut db.connect()).unwrap();
    let report = caller(&db, |_, run| async move {
        run.connection(|_: &mut String| Ok(json!(null))).await
    })
    .run_until_idle()
    .unwrap();
    assert_eq!((report.failed, report.retried), (1, 0), "{report}");
    let job = find(&db, job.id);
    let error = job.last_error().unwrap();
    assert!(error.contains(std::any::type_name::<Conn>()), "{error}");
    db.assert_invariants();
}
