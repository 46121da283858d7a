//! A server that is killed and comes back.

use super::suite::stage::{Notes, Stage, Step, await_status, start, step};
use super::{Conn, Db};
use diesel::r2d2::ConnectionManager;
use job_core::{Job, Status};
use job_test::eventually;
use job_test::server::MariadbServer;
use job_worker::Worker;
use serde_json::json;
use std::time::Duration;

/// Case 36.
#[test]
fn a_worker_carries_on_after_the_server_was_killed() {
    let mut server = MariadbServer::start();
    let db = Db::new_on(&server.url());
    let notes = Notes::default();
    let noted = notes.clone();
    let stage = Stage::new(move |name, run| {
        noted.add(name);
        Ok(json!(run.job_id()))
    });
    let started = start(
        Worker::new(ConnectionManager::<Conn>::new(db.url()), stage)
            .register::<Step>()
            .poll(Duration::from_millis(20))
            .stop_on_signals(false),
    );
    let ids = Job::enqueue_all(&mut db.connect(), (0..500).map(|job| step(job.to_string()))).unwrap();
    await_status(&db, ids[50], Status::Completed);
    server.kill();
    server.start_again();
    let conn = &mut db.connect();
    eventually("all are completed", || {
        Job::counts(conn).unwrap().unfinished() == 0
    });
    for id in ids {
        assert_eq!(Job::find(conn, id).unwrap().output::<i64>().unwrap(), id);
    }
    let report = started.stop();
    assert_eq!((report.completed, report.refused, report.retried), (500, 0, 0));
    assert_eq!(notes.all().len(), 500);
    db.assert_invariants();
}
