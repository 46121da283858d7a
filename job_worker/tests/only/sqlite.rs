//! A statement that ends the whole transaction.

use super::suite::stage::{find, step, worker};
use super::{Conn, Db};
use diesel::connection::SimpleConnection;
use job_core::{Job, Status};
use serde_json::json;

#[test]
fn a_swallowed_rollback_does_not_complete_the_job_in_that_attempt() {
    let db = Db::new();
    db.execute(
        "CREATE TABLE effects (attempt BIGINT NOT NULL); CREATE TABLE taken (id BIGINT PRIMARY KEY);
         INSERT INTO taken VALUES (1)",
    );
    let id = step("pay").enqueue(&mut db.connect()).unwrap().id;
    let for_job = db.pool(1);
    let report = worker(&db, move |_, run| {
        let paid = run.transaction(|conn: &mut Conn| {
            let attempt = run.attempt();
            conn.batch_execute(&format!("INSERT INTO effects VALUES ({attempt})"))?;
            if attempt == 1 {
                let error = conn.batch_execute("INSERT OR ROLLBACK INTO taken VALUES (1)");
                assert!(error.is_err());
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
