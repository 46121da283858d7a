//! What a worker does when the network between it and its database fails.

use super::suite::stage::{Notes, Stage, Step, Unknown, await_status, find, start, step, worker};
use super::{COMMIT, Conn, Db};
use crate::tools::child::{self, Child};
use crate::tools::proxy::Proxy;
use diesel::r2d2::ConnectionManager;
use job_core::{Job, Perform as _, Run, Status};
use job_test::eventually;
use job_worker::Worker;
use serde_json::{Value, json};
use std::time::Duration;

/// A worker that reaches its database through the proxy, with one thread.
fn through(
    proxy: &Proxy,
    body: impl Fn(&str, &Run<'_, Stage>) -> anyhow::Result<Value> + Send + Sync + 'static,
) -> Worker<Conn, Stage> {
    Worker::new(ConnectionManager::new(proxy.url()), Stage::new(body))
        .register::<Step>()
        .threads(1)
        .poll(Duration::from_millis(20))
        .heartbeat(Duration::from_millis(100))
        .rescue_after(Duration::from_secs(60))
        .stop_on_signals(false)
}

/// Case 36: after all connections were cut, again and again, the worker carries on by itself on every one of them.
#[test]
fn a_worker_carries_on_after_the_network_was_cut() {
    let (db, notes) = (Db::new(), Notes::default());
    let proxy = Proxy::to(db.url());
    let noted = notes.clone();
    let started = start(through(&proxy, move |name, run| {
        noted.add(name);
        run.connection(|conn: &mut Conn| Ok(json!(job_core::now(conn)?)))
    }));
    let conn = &mut db.connect();
    for round in 0..3 {
        let id = step(format!("before {round}")).enqueue(conn).unwrap().id;
        await_status(&db, id, Status::Completed);
        proxy.cut();
        let id = step(format!("during {round}")).enqueue(conn).unwrap().id;
        let tried = proxy.accepted();
        eventually("the worker tries to come back", || proxy.accepted() >= tried + 3);
        // A claim that was on its way when the network was cut may have got it; then it is handed back.
        assert!(!notes.all().contains(&format!("during {round}")));
        proxy.mend();
        await_status(&db, id, Status::Completed);
        // The housekeeper and the heart are back too.
        let later = step(format!("later {round}"))
            .run_in(Duration::from_millis(1))
            .enqueue(conn)
            .unwrap()
            .id;
        await_status(&db, later, Status::Completed);
        let beat = job_core::WorkerRow::list(conn).unwrap()[0].beat_at;
        eventually("it beats", || {
            job_core::WorkerRow::list(conn).unwrap()[0].beat_at > beat
        });
    }
    let report = started.stop();
    assert_eq!((report.completed, report.retried, report.refused), (9, 0, 0));
    assert_eq!(notes.all().len(), 9);
    db.assert_invariants();
}

/// A claim that was committed and not answered: its jobs are handed back, uncharged, and performed.
#[test]
fn jobs_of_a_claim_whose_answer_was_lost_are_performed() {
    let (db, notes) = (Db::new(), Notes::default());
    let proxy = Proxy::to(db.url());
    proxy.lose_answer("INSERT INTO jobs_processing", COMMIT);
    let id = step("one").max_attempts(1).enqueue(&mut db.connect()).unwrap().id;
    let noted = notes.clone();
    let started = start(through(&proxy, move |name, _| {
        noted.add(name);
        Ok(json!(null))
    }));
    await_status(&db, id, Status::Completed);
    assert_eq!(proxy.lost(), 1);
    let report = started.stop();
    assert_eq!((report.completed, report.released, report.refused), (1, 1, 0));
    assert_eq!((notes.all().len(), find(&db, id).attempts()), (1, 1));
    db.assert_invariants();
}

#[test]
fn a_run_until_idle_does_not_forget_jobs_of_a_claim_whose_answer_was_lost() {
    let db = Db::new();
    let proxy = Proxy::to(db.url());
    proxy.lose_answer("INSERT INTO jobs_processing", COMMIT);
    let id = step("one").max_attempts(1).enqueue(&mut db.connect()).unwrap().id;
    let report = through(&proxy, |_, _| Ok(json!(null))).run_until_idle().unwrap();
    assert_eq!((proxy.lost(), report.completed), (1, 1));
    assert_eq!(find(&db, id).status(), Status::Completed);
    db.assert_invariants();
}

/// A completion that was committed and not answered is no refusal, and no second run.
#[test]
fn a_completion_whose_answer_was_lost_is_recognised() {
    let (db, notes) = (Db::new(), Notes::default());
    let proxy = Proxy::to(db.url());
    proxy.lose_answer("INSERT INTO jobs_finished", COMMIT);
    let id = step("one").unique("one").enqueue(&mut db.connect()).unwrap().id;
    let noted = notes.clone();
    let report = through(&proxy, move |name, _| {
        noted.add(name);
        Ok(json!({ "result": true }))
    })
    .run_until_idle()
    .unwrap();
    assert_eq!(proxy.lost(), 1);
    assert_eq!((report.completed, report.refused, report.released), (1, 0, 0));
    assert_eq!(notes.all(), ["one"]);
    assert_eq!(
        find(&db, id).output::<Value>().unwrap(),
        json!({ "result": true })
    );
    db.assert_invariants();
}

/// While the database is away, a stop ends at its deadline, and what the worker has done is not lost: it is rescued.
#[test]
fn a_stop_ends_while_the_database_is_away() {
    let db = Db::new();
    let proxy = Proxy::to(db.url());
    let (began, begun) = crossbeam_channel::bounded::<()>(0);
    let (go, gone) = crossbeam_channel::bounded::<()>(0);
    let id = step("one").enqueue(&mut db.connect()).unwrap().id;
    let started = start(
        through(&proxy, move |_, _| {
            began.send(())?;
            gone.recv()?;
            Ok(json!(null))
        })
        .grace(Duration::from_millis(200)),
    );
    begun.recv().unwrap();
    proxy.cut();
    go.send(()).unwrap();
    let report = started.stop();
    assert_eq!((report.completed, report.abandoned), (0, 1));
    assert_eq!(find(&db, id).status(), Status::Processing);
    db.assert_invariants();
}

/// A server that takes everything and answers nothing holds a thread for ever, but not the stop.
#[test]
fn a_stop_ends_while_the_database_does_not_answer() {
    let db = Db::new();
    let proxy = Proxy::to(db.url());
    let started = start(through(&proxy, |_, _| Ok(json!(null))));
    let id = step("one").enqueue(&mut db.connect()).unwrap().id;
    await_status(&db, id, Status::Completed);
    let links = proxy.sent().len();
    proxy.swallow("");
    eventually("the worker's threads wait for answers", || {
        proxy.swallowed() >= links.min(3)
    });
    started.handle.stop();
    // The answer to the completion may have been the first one that was lost.
    let report = started.stop();
    assert_eq!(report.completed + report.abandoned, 1);
    db.assert_invariants();
}

/// Case 42: how much a worker asks that has nothing to do.
#[test]
fn an_idle_worker_asks_little() {
    let db = Db::new();
    Unknown
        .job()
        .queue("elsewhere")
        .enqueue(&mut db.connect())
        .unwrap();
    let proxy = Proxy::to(db.url());
    let started = start(
        through(&proxy, |_, _| Ok(json!(null)))
            .poll(Duration::from_millis(200))
            .heartbeat(Duration::from_secs(5)),
    );
    let total = || proxy.sent().iter().map(Vec::len).sum::<usize>();
    eventually("the housekeeper works", || {
        proxy.sent().iter().any(|sent| sent_has(sent, "jobs_scheduled"))
    });
    // The fetcher's connection is the one that looks for lanes.
    let fetcher = || {
        let sent = proxy.sent();
        sent.iter()
            .find(|sent| sent_has(sent, "priority"))
            .map_or(0, Vec::len)
    };
    let (all, own) = (total(), fetcher());
    let mut last = own;
    for _ in 0..10 {
        eventually("the fetcher looks", || fetcher() > last);
        last = fetcher();
    }
    // Ten looks are two seconds, in which the others, too, ask some times; all of it is a few kilobytes.
    assert!(
        total() - all < 20_000,
        "{} bytes, {} of them the fetcher's",
        total() - all,
        last - own
    );
    started.stop();
    db.assert_invariants();
}

fn sent_has(sent: &[u8], text: &str) -> bool {
    sent.windows(text.len()).any(|window| window == text.as_bytes())
}

#[test]
#[ignore = "a process that other tests start"]
fn child_works() {
    if let Some(url) = child::url() {
        let stage = Stage::new(|_, _| Ok(json!(null)));
        let report = Worker::new(ConnectionManager::<Conn>::new(url), stage)
            .register::<Step>()
            .run()
            .unwrap();
        child::say(&format!("report {report}"));
    }
}

/// Case 18: a signal that comes while the worker connects is not lost.
#[test]
fn a_signal_during_the_start_is_not_lost() {
    let db = Db::new();
    let proxy = Proxy::to(db.url());
    Job::enqueue_all(&mut db.connect(), (0..10).map(|_| step("never"))).unwrap();
    proxy.hold(true);
    let mut child = Child::start(module_path!(), "child_works", proxy.url());
    eventually("it connects", || proxy.accepted() == 1);
    child.signal("TERM");
    proxy.hold(false);
    let report = child.hear().unwrap();
    assert!(report.starts_with("report 0 completed"), "{report}");
    assert!(child.wait().success());
    assert_eq!(Job::counts(&mut db.connect()).unwrap().of(Status::New), 10);
    assert_eq!(db.count("SELECT count(*) FROM workers"), 0);
    db.assert_invariants();
}

/// The worker of these tests reaches its database directly.
#[test]
fn two_workers_of_one_process_do_not_disturb_each_other() {
    let (db, other) = (Db::new(), Db::new());
    let (first, second) = (
        start(worker(&db, |_, _| Ok(json!(null)))),
        start(worker(&other, |_, _| Ok(json!(null)))),
    );
    let ids = [&db, &other].map(|db| step("one").enqueue(&mut db.connect()).unwrap().id);
    await_status(&db, ids[0], Status::Completed);
    first.stop();
    await_status(&other, ids[1], Status::Completed);
    assert_eq!(second.stop().completed, 1);
    db.assert_invariants();
    other.assert_invariants();
}
