//! Rows that an app's transaction has locked and does not let go.

use super::super::suite::stage::{await_status, find, start, step, worker};
use super::{Conn, Db};
use crossbeam_channel::bounded;
use diesel::Connection;
use job_core::{Job, Status};
use serde_json::json;

#[test]
fn an_open_transaction_about_one_job_does_not_hold_up_the_outcomes_of_others() {
    for fails in [false, true] {
        let db = Db::new();
        let conn = &mut db.connect();
        let cancelled = step("cancelled").enqueue(conn).unwrap().id;
        let (began, has_begun) = bounded(1);
        let (go_on, may_go_on) = bounded::<()>(0);
        let started = start(worker(&db, move |name, _| {
            if name == "cancelled" {
                began.send(())?;
                let _ = may_go_on.recv();
                anyhow::ensure!(!fails, "no luck");
            }
            Ok(json!(null))
        }));
        has_begun.recv().unwrap();
        let app: &mut Conn = &mut db.connect();
        app.transaction(|app| {
            Job::cancel(app, cancelled, "unwanted")?;
            // It ends in the middle of the app's transaction, and others after it.
            drop(go_on);
            let others = Job::enqueue_all(conn, (0..20).map(|n| step(n.to_string()))).unwrap();
            for id in others {
                await_status(&db, id, Status::Completed);
            }
            Ok::<_, job_core::JobError>(())
        })
        .unwrap();
        let report = started.stop();
        assert_eq!((report.completed, report.refused), (20, 1), "{report}");
        assert_eq!(find(&db, cancelled).status(), Status::Cancelled);
        db.assert_invariants();
    }
}
