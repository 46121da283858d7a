//! A database that is read-only for a while, as after a failover, or on a disk that is nearly full.

use super::super::suite::stage::{Stage, Step, await_status, find, start, step};
use super::{Conn, Db};
use crate::tools::capture;
use anyhow::ensure;
use crossbeam_channel::bounded;
use diesel::r2d2::ConnectionManager;
use job_core::{Job, Status};
use job_test::eventually;
use job_worker::Worker;
use serde_json::json;
use std::time::Duration;

/// No outcome is changed by it, of jobs that end meanwhile. The database says `refusal` then; the log is captured.
pub(super) fn read_only_for_a_while(db: &Db, url: &str, refusal: &str, read_only: &mut dyn FnMut(bool)) {
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
    read_only(true);
    for _ in &ids {
        go.send(()).unwrap();
    }
    // More often than the worker needs to suspect an outcome that the database refuses alone.
    eventually("outcomes are refused again and again", || {
        capture::lines_with(refusal)
            .iter()
            .filter(|line| line.contains("completer"))
            .count()
            > 5
    });
    for id in &ids {
        assert_eq!(find(db, *id).status(), Status::Processing);
    }
    read_only(false);
    for id in &ids {
        await_status(db, *id, Status::Completed);
        let job = find(db, *id);
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
