//! An outcome that the database refuses, whatever it is, as by a trigger of the app's.

use super::super::suite::stage::{await_status, find, start, step, worker};
use super::Db;
use diesel::connection::SimpleConnection;
use job_core::{Job, Status};
use serde_json::json;

/// `refuse` is given the job's id in place of `ID`; `take` is how it is undone.
pub(super) fn others_are_recorded_beside_it(refuse: &str, take: &str) {
    let db = Db::new();
    let conn = &mut db.connect();
    let refused = step("refused").enqueue(conn).unwrap().id;
    conn.batch_execute(&refuse.replace("ID", &refused.to_string()))
        .unwrap();
    let started = start(worker(&db, |_, _| Ok(json!(null))));
    await_status(&db, refused, Status::Processing);
    let others = Job::enqueue_all(conn, (0..20).map(|n| step(n.to_string()))).unwrap();
    for id in others {
        await_status(&db, id, Status::Completed);
    }
    assert_eq!(find(&db, refused).status(), Status::Processing);
    // It is not lost.
    conn.batch_execute(take).unwrap();
    await_status(&db, refused, Status::Completed);
    assert_eq!(started.stop().completed, 21);
    db.assert_invariants();
}
