//! Notifications, and a server that is restarted.

use super::suite::stage::{Notes, Stage, Step, await_status, start, step};
use super::{Conn, Db};
use crate::tools::capture;
use crate::tools::proxy::Proxy;
use diesel::r2d2::ConnectionManager;
use job_core::{Job, Status};
use job_test::eventually;
use job_test::server::PostgresServer;
use job_worker::Worker;
use serde_json::json;
use std::time::Duration;

/// A worker that would find nothing for an hour if it were not notified.
fn sleepy(url: &str) -> Worker<Conn, Stage> {
    let stage = Stage::new(|_, _| Ok(json!(null)));
    Worker::new(ConnectionManager::<Conn>::new(url), stage)
        .register::<Step>()
        .poll(Duration::from_secs(3600))
        .stop_on_signals(false)
}

#[test]
fn a_notification_wakes_the_worker() {
    let db = Db::new();
    let started = start(sleepy(db.url()));
    let conn = &mut db.connect();
    for number in 0..5 {
        // A job without a notification of its own, within the pause of the sender, is found by the second look.
        let id = step(number.to_string()).enqueue(conn).unwrap().id;
        await_status(&db, id, Status::Completed);
    }
    assert_eq!(started.stop().completed, 5);
    db.assert_invariants();
}

/// Case 38: what was enqueued before the worker listened is found by the look after LISTEN.
#[test]
fn what_was_enqueued_before_the_worker_listens_is_found() {
    let db = Db::new();
    let proxy = Proxy::to(db.url());
    let conn = &mut db.connect();
    let started = start(sleepy(proxy.url()));
    for round in 0..3 {
        eventually("it listens", || {
            proxy
                .sent()
                .iter()
                .filter(|sent| sent.windows(6).any(|text| text == b"LISTEN"))
                .count()
                > round
        });
        proxy.cut();
        // Nobody hears this one.
        let id = step("unheard").enqueue(conn).unwrap().id;
        proxy.mend();
        await_status(&db, id, Status::Completed);
    }
    assert_eq!(started.stop().completed, 3);
    db.assert_invariants();
}

/// Case 37: a listener whose connection is half dead hears nothing; polling goes on.
#[test]
fn polling_goes_on_while_the_listener_is_deaf() {
    let db = Db::new();
    let proxy = Proxy::to(db.url());
    proxy.swallow("LISTEN");
    let started = start(sleepy(proxy.url()).poll(Duration::from_millis(20)));
    eventually("the listener waits for an answer", || proxy.swallowed() == 1);
    let id = step("polled").enqueue(&mut db.connect()).unwrap().id;
    await_status(&db, id, Status::Completed);
    assert_eq!(started.stop().completed, 1);
    db.assert_invariants();
}

/// Case 39: a notification carries no name, so that none can be too long for it.
#[test]
fn any_name_of_a_queue_is_notified() {
    let db = Db::new();
    let names = [
        "q".repeat(255),
        "🦀".repeat(63),
        "é".repeat(127),
        "a'b\"c".to_owned(),
    ];
    let started = start(sleepy(db.url()).queues(names.clone()));
    let conn = &mut db.connect();
    for name in &names {
        let id = step("named").queue(name).enqueue(conn).unwrap().id;
        await_status(&db, id, Status::Completed);
    }
    assert_eq!(started.stop().completed, 4);
    db.assert_invariants();
}

/// Case 36: the server crashes while the worker works, and comes back.
#[test]
fn a_worker_carries_on_after_the_server_crashed() {
    let server = PostgresServer::start();
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
    for round in 0..2 {
        let ids = Job::enqueue_all(
            &mut db.connect(),
            (0..500).map(|job| step(format!("{round}.{job}"))),
        )
        .unwrap();
        await_status(&db, ids[50], Status::Completed);
        server.stop_immediate();
        server.start_again();
        let conn = &mut db.connect();
        eventually("all are completed", || {
            Job::counts(conn).unwrap().unfinished() == 0
        });
        for id in ids {
            assert_eq!(Job::find(conn, id).unwrap().output::<i64>().unwrap(), id);
        }
    }
    let report = started.stop();
    assert_eq!((report.completed, report.refused, report.retried), (1_000, 0, 0));
    // Nobody died, so each was performed once.
    assert_eq!(notes.all().len(), 1_000);
    db.assert_invariants();
}

/// A password in the URL is not logged, whatever goes wrong.
#[test]
fn the_password_of_the_url_never_reaches_the_log() {
    capture::begin();
    let db = Db::new();
    let proxy = Proxy::to(db.url());
    let secret = "s3cret-of-the-url";
    // The server of these tests asks nobody for a password.
    let url = proxy.url().replacen('@', &format!(":{secret}@"), 1);
    let id = step("one").enqueue(&mut db.connect()).unwrap().id;
    let started = start(sleepy(&url).poll(Duration::from_millis(20)));
    await_status(&db, id, Status::Completed);
    proxy.cut();
    let tried = proxy.accepted();
    eventually("it tries again", || proxy.accepted() >= tried + 5);
    proxy.mend();
    started.stop();
    assert!(!capture::lines_with("trying again").is_empty());
    let leaks = capture::lines_with(secret);
    assert!(leaks.is_empty(), "{leaks:?}");
    db.assert_invariants();
}
