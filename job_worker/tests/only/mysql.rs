//! A server that is killed and comes back, or refuses to write, and what a deadlock leaves.

use super::suite::stage::{Notes, Stage, Step, await_status, find, start, step, worker};
use super::{Conn, Db};
use crate::tools::capture;
use anyhow::ensure;
use crossbeam_channel::bounded;
use diesel::connection::SimpleConnection;
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

/// As after a failover.
#[test]
fn a_database_that_is_read_only_for_a_while_changes_no_outcome() {
    capture::begin();
    let server = MariadbServer::start();
    let db = Db::new_on(&server.url());
    // Root could go on writing.
    let name = db.text("SELECT DATABASE()").unwrap();
    db.execute("CREATE USER app@'%'");
    db.execute(&format!("GRANT ALL ON {name}.* TO app@'%'"));
    let url = db.url().replacen("root@", "app@", 1);
    let (began, begun) = bounded::<()>(0);
    let (go, gone) = bounded::<()>(0);
    let stage = Stage::new(move |name, run| {
        if run.attempt() == 1 {
            began.send(())?;
            gone.recv()?;
            ensure!(name != "fails once", "not this time");
        }
        Ok(json!("paid"))
    });
    let started = start(
        Worker::new(ConnectionManager::<Conn>::new(url), stage)
            .register::<Step>()
            .threads(2)
            .poll(Duration::from_millis(20))
            .stop_on_signals(false),
    );
    let ids = Job::enqueue_all(&mut db.connect(), ["pays", "fails once"].map(step)).unwrap();
    for _ in &ids {
        begun.recv().unwrap();
    }
    db.execute("SET GLOBAL read_only = 1");
    for _ in &ids {
        go.send(()).unwrap();
    }
    // More often than the worker needs to suspect an outcome that the database refuses alone.
    eventually("outcomes are refused again and again", || {
        capture::lines_with("--read-only")
            .iter()
            .filter(|line| line.contains("gatun completer"))
            .count()
            > 5
    });
    for id in &ids {
        assert_eq!(find(&db, *id).status(), Status::Processing);
    }
    db.execute("SET GLOBAL read_only = 0");
    for id in &ids {
        await_status(&db, *id, Status::Completed);
        let job = find(&db, *id);
        assert_eq!(job.output::<String>().unwrap(), "paid");
        let expected = if *id == ids[0] {
            (1, None)
        } else {
            (2, Some("not this time"))
        };
        assert_eq!((job.attempts(), job.last_error()), expected);
    }
    let report = started.stop();
    assert_eq!((report.completed, report.retried, report.failed), (2, 1, 0));
    db.assert_invariants();
}

/// InnoDB rolls back the whole transaction of a deadlock's victim; a job that goes on after it must not be completed.
#[test]
fn a_swallowed_deadlock_does_not_complete_the_job_in_that_attempt() {
    let db = Db::new();
    db.execute("CREATE TABLE effects (attempt BIGINT NOT NULL)");
    db.execute("CREATE TABLE fought_for (id BIGINT PRIMARY KEY, n BIGINT NOT NULL)");
    db.execute("INSERT INTO fought_for VALUES (1, 0), (2, 0)");
    db.execute("CREATE TABLE weights (id BIGINT PRIMARY KEY)");
    let id = step("pay").enqueue(&mut db.connect()).unwrap().id;
    let for_job = db.pool(2);
    let report = worker(&db, move |_, run| {
        let paid = run.transaction(|conn: &mut Conn| {
            let attempt = run.attempt();
            conn.batch_execute(&format!("INSERT INTO effects VALUES ({attempt})"))?;
            if attempt == 1 {
                conn.batch_execute("UPDATE fought_for SET n = n + 1 WHERE id = 1")?;
                // The victim is the one that has written less.
                let other = &mut for_job.get()?;
                other.batch_execute("BEGIN")?;
                other.batch_execute("INSERT INTO weights SELECT seq FROM seq_1_to_100")?;
                other.batch_execute("UPDATE fought_for SET n = n + 1 WHERE id = 2")?;
                let swallowed = std::thread::scope(|scope| {
                    let other = scope.spawn(|| {
                        other.batch_execute("UPDATE fought_for SET n = n + 1 WHERE id = 1")?;
                        other.batch_execute("COMMIT")
                    });
                    let swallowed = conn.batch_execute("UPDATE fought_for SET n = n + 1 WHERE id = 2");
                    other.join().unwrap().unwrap();
                    swallowed
                });
                assert!(swallowed.unwrap_err().to_string().contains("Deadlock"));
            }
            Ok(json!("paid"))
        });
        assert_eq!(paid.is_ok(), run.attempt() == 2);
        assert_eq!(run.is_recorded(), paid.is_ok());
        let status = Job::find(&mut *for_job.get()?, run.job_id())?.status();
        let expected = if paid.is_ok() {
            Status::Completed
        } else {
            Status::Processing
        };
        assert_eq!(status, expected);
        paid
    })
    .threads(1)
    .run_until_idle()
    .unwrap();
    assert_eq!((report.completed, report.retried), (1, 1));
    let job = find(&db, id);
    assert_eq!((job.status(), job.attempts()), (Status::Completed, 2));
    assert_eq!(db.bigints("SELECT attempt FROM effects"), [2]);
    db.assert_invariants();
}
