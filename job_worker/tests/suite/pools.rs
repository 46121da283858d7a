//! Case 22: a pool smaller than the number of threads makes jobs wait for each other, and nothing else.

use super::stage::{Stage, step, worker};
use super::{Conn, Db};
use diesel::r2d2::{ConnectionManager, Pool};
use job_core::{Job, Run, now};
use serde_json::{Value, json};
use std::sync::mpsc::channel;
use std::time::Duration;

fn ask(_: &str, run: &Run<'_, Stage>) -> anyhow::Result<Value> {
    run.connection(|conn: &mut Conn| Ok(now(conn).map(|_| ())?))?;
    run.transaction(|conn: &mut Conn| Ok(json!(now(conn)?.timestamp())))
}

#[test]
fn one_connection_serves_eight_threads() {
    let db = Db::new();
    Job::enqueue_all(&mut db.connect(), (0..50).map(|_| step("ask"))).unwrap();
    let report = worker(&db, ask).threads(8).pool_size(1).run_until_idle().unwrap();
    assert_eq!((report.completed, report.retried), (50, 0));
    db.assert_invariants();
}

#[test]
fn the_pool_of_the_app_serves_the_jobs() {
    let db = Db::new();
    Job::enqueue_all(&mut db.connect(), (0..50).map(|_| step("ask"))).unwrap();
    let pool = db.pool(1);
    let report = worker(&db, ask)
        .threads(8)
        .pool(pool.clone())
        .run_until_idle()
        .unwrap();
    assert_eq!((report.completed, report.retried), (50, 0));
    assert_eq!(pool.state().idle_connections, 1);
    db.assert_invariants();
}

#[test]
fn jobs_that_ask_for_no_connection_need_none() {
    let db = Db::new();
    Job::enqueue_all(&mut db.connect(), (0..50).map(|_| step("no need"))).unwrap();
    let pool = db.pool(1);
    let held = pool.get().unwrap();
    let report = worker(&db, |_, _| Ok(json!(null)))
        .pool(pool)
        .run_until_idle()
        .unwrap();
    assert_eq!(report.completed, 50);
    drop(held);
    db.assert_invariants();
}

#[test]
fn a_job_that_gets_no_connection_is_not_told_the_password() {
    let db = Db::new();
    step("ask").enqueue(&mut db.connect()).unwrap();
    let pool = Pool::builder()
        .connection_timeout(Duration::from_millis(100))
        .build_unchecked(ConnectionManager::<Conn>::new("postgres//user:secret@nowhere/db"));
    let (tell, told) = channel();
    worker(&db, move |name, run| {
        tell.send(ask(name, run).unwrap_err()).unwrap();
        Ok(json!(null))
    })
    .pool(pool)
    .run_until_idle()
    .unwrap();
    let error = format!("{:?}", told.recv().unwrap());
    assert!(error.contains("no database connection for the job"), "{error}");
    assert!(!error.contains("secret"), "{error}");
}
