//! Workers in processes of their own.

use super::stage::{Stage, Step, await_status, find, step};
use super::{Conn, Db};
use crate::tools::child::{self, Child};
use diesel::r2d2::ConnectionManager;
use job_core::{Job, Status};
use job_worker::Worker;
use serde_json::json;
use std::os::unix::process::ExitStatusExt;
use std::time::Duration;

fn child(test: &str, db: &Db) -> Child {
    Child::start(module_path!(), test, db.url())
}

/// The worker of a child: its jobs say their names.
fn talkative(url: &str) -> Worker<Conn, Stage> {
    let stage = Stage::new(|name, run| {
        child::say(&format!("{name} {}", run.job_id()));
        match name {
            "abort" => std::process::abort(),
            "stay" => {
                while !run.is_stopping() {
                    std::thread::park_timeout(Duration::from_millis(5));
                }
            }
            _ => {}
        }
        Ok(json!(null))
    });
    Worker::new(ConnectionManager::<Conn>::new(url), stage)
        .register::<Step>()
        .poll(Duration::from_millis(20))
        .heartbeat(Duration::from_millis(200))
        .rescue_after(Duration::from_secs(60))
}

#[test]
#[ignore = "a process that other tests start"]
fn child_works_until_idle() {
    if let Some(url) = child::url() {
        let report = talkative(&url).run_until_idle().unwrap();
        child::say(&format!("end {} {}", report.retried, report.refused));
    }
}

#[test]
#[ignore = "a process that other tests start"]
fn child_works() {
    if let Some(url) = child::url() {
        let report = talkative(&url).run().unwrap();
        child::say(&format!("report {report}"));
    }
}

#[test]
#[ignore = "a process that other tests start"]
fn child_outlives_its_worker() {
    if let Some(url) = child::url() {
        let worker = talkative(&url);
        worker.handle().stop();
        worker.run().unwrap();
        child::say("outlived");
        loop {
            std::thread::park();
        }
    }
}

/// Case 1: each job is performed by one of them, and only once; nothing surfaces from their standing in each other's way.
fn each_job_once(processes: usize) {
    let db = Db::new();
    let ids = Job::enqueue_all(&mut db.connect(), (0..500).map(|_| step("job"))).unwrap();
    let children: Vec<Child> = (0..processes)
        .map(|_| child("child_works_until_idle", &db))
        .collect();
    let mut performed = Vec::new();
    for mut child in children {
        let mut ended = false;
        while let Some(said) = child.hear() {
            match said.split_once(' ').unwrap() {
                ("job", id) => performed.push(id.parse::<i64>().unwrap()),
                (_, counts) => {
                    assert_eq!(counts, "0 0");
                    ended = true;
                }
            }
        }
        assert!(ended && child.wait().success());
    }
    performed.sort_unstable();
    assert_eq!(performed, ids);
    assert_eq!(Job::counts(&mut db.connect()).unwrap().of(Status::Completed), 500);
    db.assert_invariants();
}

#[test]
fn two_processes_perform_each_job_once() {
    each_job_once(2);
}

#[test]
fn four_processes_perform_each_job_once() {
    each_job_once(4);
}

#[test]
fn a_process_stops_cleanly_on_either_signal() {
    for signal in ["TERM", "INT"] {
        let db = Db::new();
        let id = step("stay").enqueue(&mut db.connect()).unwrap().id;
        let mut child = child("child_works", &db);
        assert_eq!(child.hear(), Some(format!("stay {id}")));
        child.signal(signal);
        let report = child.hear().unwrap();
        assert!(report.starts_with("report 1 completed"), "{report}");
        assert!(child.wait().success());
        assert_eq!(find(&db, id).status(), Status::Completed);
        assert_eq!(db.count("SELECT count(*) FROM workers"), 0);
        db.assert_invariants();
    }
}

#[test]
fn a_signal_ends_a_process_whose_worker_has_ended() {
    let db = Db::new();
    let mut child = child("child_outlives_its_worker", &db);
    assert_eq!(child.hear().as_deref(), Some("outlived"));
    child.signal("TERM");
    assert_eq!(child.wait().signal(), Some(15));
    db.assert_invariants();
}

/// Case 14, the real thing: each attempt takes its process with it.
#[test]
fn a_job_that_kills_its_process_ends_within_its_attempts() {
    let db = Db::new();
    let conn = &mut db.connect();
    let id = step("abort").max_attempts(2).enqueue(conn).unwrap().id;
    for attempt in 1..=2 {
        let mut child = child("child_works", &db);
        assert_eq!(child.hear(), Some(format!("abort {id}")));
        assert_eq!(child.wait().signal(), Some(6));
        assert_eq!(find(&db, id).attempts(), attempt);
        // As if the rescue time had passed.
        db.execute("DELETE FROM workers");
        job_core::housekeeping::rescue(conn, 10).unwrap();
        super::stage::make_due(&db);
    }
    await_status(&db, id, Status::Failed);
    assert_eq!(find(&db, id).attempts(), 2);
    db.assert_invariants();
}
