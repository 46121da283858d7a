//! Both sorts of jobs in one worker, and workers that die with async jobs.

use super::scene::Gate;
use super::stage::{await_status, find, make_due, start};
use super::{Conn, Db};
use crate::tools::child::{self, Child};
use crossbeam_channel::{Receiver, Sender, bounded};
use diesel::r2d2::ConnectionManager;
use job_core::{Job, Perform, PerformAsync, Run, RunAsync, Status, housekeeping};
use job_worker::Worker;
use serde::{Deserialize, Serialize};
use std::time::Duration;

/// What holds up the jobs of each sort, if anything.
#[derive(Default)]
struct Barriers {
    threads: Option<Receiver<()>>,
    futures: Option<Gate>,
}

/// A job on a thread that enqueues an async one, until there were enough.
#[derive(Serialize, Deserialize)]
struct Ping(u32);

impl Perform for Ping {
    const KIND: &'static str = "ping";
    type Context = Barriers;
    type Output = ();

    fn perform(&self, run: &Run<'_, Barriers>) -> anyhow::Result<()> {
        if let Some(barrier) = &run.context().threads {
            let _ = barrier.recv();
        }
        match self.0 {
            0 => Ok(()),
            left => run.connection(|conn: &mut Conn| Ok(Pong(left - 1).enqueue(conn).map(|_| ())?)),
        }
    }
}

/// The same the other way.
#[derive(Serialize, Deserialize)]
struct Pong(u32);

impl PerformAsync for Pong {
    const KIND: &'static str = "pong";
    type Context = Barriers;
    type Output = ();

    async fn perform(&self, run: &RunAsync<Barriers>) -> anyhow::Result<()> {
        if let Some(gate) = &run.context().futures {
            gate.pass().await;
        }
        match self.0 {
            0 => Ok(()),
            left => {
                run.connection(move |conn: &mut Conn| Ok(Ping(left - 1).enqueue(conn).map(|_| ())?))
                    .await
            }
        }
    }
}

fn both(db: &Db, barriers: Barriers) -> Worker<Conn, Barriers> {
    Worker::new(db.manager(), barriers)
        .register::<Ping>()
        .register_async::<Pong>()
        .threads(2)
        .async_jobs(20)
        .async_threads(1)
        .poll(Duration::from_millis(20))
        .stop_on_signals(false)
}

#[test]
fn a_run_until_idle_waits_for_both_sorts() {
    let db = Db::new();
    let conn = &mut db.connect();
    Ping(12).enqueue(conn).unwrap();
    Pong(13).enqueue(conn).unwrap();
    let report = both(&db, Barriers::default()).run_until_idle().unwrap();
    assert_eq!((report.completed, report.released), (13 + 14, 0));
    assert_eq!(Job::counts(conn).unwrap().of(Status::Completed), 27);
    db.assert_invariants();
}

#[test]
fn neither_sort_waits_for_the_other() {
    let db = Db::new();
    let conn = &mut db.connect();
    // More async jobs than may be performed at once, all in front.
    let pongs = Job::enqueue_all(conn, (0..30).map(|_| Pong(0))).unwrap();
    let pings = Job::enqueue_all(conn, (0..10).map(|_| Ping(0))).unwrap();
    let gate = Gate::closed();
    let (end, ended): (Sender<()>, _) = bounded(0);
    drop(end);
    let barriers = Barriers {
        threads: Some(ended),
        futures: Some(gate.clone()),
    };
    let started = start(both(&db, barriers));
    for &id in &pings {
        await_status(&db, id, Status::Completed);
    }
    assert_eq!(find(&db, pongs[29]).status(), Status::New);
    gate.open();
    await_status(&db, pongs[29], Status::Completed);
    assert_eq!(started.stop().completed, 40);

    let pings = Job::enqueue_all(conn, (0..10).map(|_| Ping(0))).unwrap();
    let pongs = Job::enqueue_all(conn, (0..10).map(|_| Pong(0))).unwrap();
    let (end, ended) = bounded(0);
    let barriers = Barriers {
        threads: Some(ended),
        futures: None,
    };
    let started = start(both(&db, barriers));
    for &id in &pongs {
        await_status(&db, id, Status::Completed);
    }
    assert_ne!(find(&db, pings[9]).status(), Status::Completed);
    drop(end);
    await_status(&db, pings[9], Status::Completed);
    assert_eq!(started.stop().completed, 20);
    db.assert_invariants();
}

#[test]
fn the_row_of_a_worker_names_the_kinds_of_both_sorts() {
    let db = Db::new();
    let conn = &mut db.connect();
    let started = start(both(&db, Barriers::default()));
    let id = Pong(0).enqueue(conn).unwrap().id;
    await_status(&db, id, Status::Completed);
    assert_eq!(
        job_core::WorkerRow::list(conn).unwrap()[0].kinds,
        ["ping", "pong"]
    );
    started.stop();
    db.assert_invariants();
}

/// An async job that tells its parent, and stays on its first attempt.
#[derive(Serialize, Deserialize)]
struct Stay;

impl PerformAsync for Stay {
    const KIND: &'static str = "stay";
    type Context = ();
    type Output = i32;

    async fn perform(&self, run: &RunAsync<()>) -> anyhow::Result<i32> {
        child::say(&format!("stay {}", run.job_id()));
        if run.attempt() == 1 {
            run.stopping().await;
        }
        Ok(run.attempt())
    }
}

fn patient(url: &str) -> Worker<Conn, ()> {
    Worker::new(ConnectionManager::<Conn>::new(url), ())
        .register_async::<Stay>()
        .poll(Duration::from_millis(20))
}

#[test]
#[ignore = "a process that other tests start"]
fn child_waits() {
    if let Some(url) = child::url() {
        let report = patient(&url).run().unwrap();
        child::say(&format!("report {report}"));
    }
}

#[test]
fn async_jobs_of_a_process_that_was_killed_are_rescued() {
    let db = Db::new();
    let conn = &mut db.connect();
    let ids = Job::enqueue_all(conn, (0..5).map(|_| Stay)).unwrap();
    let mut child = Child::start(module_path!(), "child_waits", db.url());
    for _ in &ids {
        assert!(child.hear().unwrap().starts_with("stay "));
    }
    child.signal("KILL");
    child.wait();
    // As if the rescue time had passed.
    db.execute("DELETE FROM workers");
    assert_eq!(housekeeping::rescue(conn, 10).unwrap(), ids);
    make_due(&db);
    let report = patient(db.url()).stop_on_signals(false).run_until_idle().unwrap();
    assert_eq!(report.completed, 5);
    for id in ids {
        assert_eq!(find(&db, id).output::<i32>().unwrap(), 2);
    }
    db.assert_invariants();
}

#[test]
fn a_signal_stops_a_process_with_async_jobs_cleanly() {
    let db = Db::new();
    let id = Stay.enqueue(&mut db.connect()).unwrap().id;
    let mut child = Child::start(module_path!(), "child_waits", db.url());
    assert_eq!(child.hear(), Some(format!("stay {id}")));
    child.signal("TERM");
    let report = child.hear().unwrap();
    assert!(report.starts_with("report 1 completed"), "{report}");
    assert!(child.wait().success());
    assert_eq!(find(&db, id).output::<i32>().unwrap(), 1);
    assert_eq!(db.count("SELECT count(*) FROM workers"), 0);
    db.assert_invariants();
}
