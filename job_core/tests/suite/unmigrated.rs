//! What a newcomer is told who has not called `migrate`.

use super::Db;
use super::support::{any, echo};
use job_core::{EnqueueError, Job, JobError, WorkerRow};

const HINT: &str = "job_core::migrate(conn)";

#[test]
fn every_verb_says_what_to_do_where_there_are_no_tables() {
    let db = Db::empty();
    let conn = &mut db.connect();
    let enqueued = any().enqueue(conn).unwrap_err();
    let unique = any().unique("key").enqueue(conn).unwrap_err();
    let many = Job::enqueue_all(conn, [echo("one"), echo("two")]).unwrap_err();
    for error in [enqueued, unique, many] {
        assert!(matches!(error, EnqueueError::Database(_)), "{error:?}");
        assert!(error.to_string().contains(HINT), "{error}");
        let chain = format!("{:#}", anyhow::Error::from(error));
        assert_eq!(chain.matches(HINT).count(), 1, "{chain}");
    }
    let looked = [
        Job::find(conn, 1).unwrap_err(),
        Job::cancel(conn, 1, "no").unwrap_err(),
        Job::retry(conn, 1).unwrap_err(),
        Job::counts(conn).unwrap_err(),
        WorkerRow::register(conn, &["default".into()], &["echo".into()]).unwrap_err(),
    ];
    for error in looked {
        assert!(matches!(error, JobError::Database(_)), "{error:?}");
        assert!(error.to_string().contains(HINT), "{error}");
    }
}

#[test]
fn a_table_of_the_apps_that_is_missing_is_not_ours() {
    let db = Db::empty();
    let error =
        diesel::connection::SimpleConnection::batch_execute(&mut db.connect(), "SELECT * FROM orders");
    let error = EnqueueError::from(error.unwrap_err());
    assert!(!error.to_string().contains(HINT), "{error}");
}
