//! A server that is killed and comes back, or refuses to write, and what a deadlock leaves.

#[path = "read_only.rs"]
mod read_only; // a database that is read-only for a while
#[path = "refused.rs"]
mod refused; // outcomes that the database never takes

use super::suite::stage::{Notes, Stage, Step, await_status, start, step};
use super::suite::transactions::not_completed_where_the_transaction_ended;
use super::{Conn, Db};
use crate::tools::capture;
use diesel::connection::SimpleConnection;
use diesel::r2d2::ConnectionManager;
use job_core::{Job, Status};
use job_test::eventually;
use job_test::server::MariadbServer;
use job_worker::Worker;
use read_only::read_only_for_a_while;
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
    let mut read_only = |is_on| db.execute(&format!("SET GLOBAL read_only = {}", i32::from(is_on)));
    read_only_for_a_while(&db, &url, "--read-only", &mut read_only);
}

/// InnoDB rolls back the whole transaction of a deadlock's victim; a job that goes on after it must not be completed.
#[test]
fn a_swallowed_deadlock_does_not_complete_the_job_in_that_attempt() {
    let db = Db::new();
    db.execute("CREATE TABLE fought_for (id BIGINT PRIMARY KEY, n BIGINT NOT NULL)");
    db.execute("INSERT INTO fought_for VALUES (1, 0), (2, 0)");
    db.execute("CREATE TABLE weights (id BIGINT PRIMARY KEY)");
    let others = db.pool(1);
    not_completed_where_the_transaction_ended(&db, &[2], move |conn| {
        conn.batch_execute("UPDATE fought_for SET n = n + 1 WHERE id = 1")?;
        // The victim is the one that has written less.
        let other = &mut others.get()?;
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
        Ok(())
    });
}

#[test]
fn an_outcome_that_is_refused_whatever_it_is_does_not_hold_up_others() {
    refused::others_are_recorded_beside_it(
        "CREATE TRIGGER refuse BEFORE INSERT ON jobs_finished FOR EACH ROW
           IF NEW.job_id = ID THEN SIGNAL SQLSTATE '45000' SET MESSAGE_TEXT = 'never'; END IF",
        "DROP TRIGGER refuse",
    );
}
