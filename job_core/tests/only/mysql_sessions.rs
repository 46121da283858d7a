use super::super::suite::support::{any, claim, claimed, echo, promote_all, register};
use super::Db;
use diesel::Connection;
use diesel::connection::SimpleConnection;
use diesel::result::Error;
use job_core::{Job, JsonText, Perform, Status, complete_all, migrate};
use std::time::Duration;

/// All that others do, on a session that waits for no lock.
fn live_beside(db: &Db) {
    let conn = &mut db.connect();
    conn.batch_execute("SET SESSION innodb_lock_wait_timeout = 1")
        .unwrap();
    let worker = register(conn);
    let job = claimed(conn, &worker, any().unique("ours"));
    job.fail(conn, "no").unwrap();
    job_core::housekeeping::promote(conn, 100).unwrap();
    any().run_in(Duration::from_secs(60)).enqueue(conn).unwrap();
    let job = claimed(conn, &worker, any());
    job.release(conn).unwrap();
    let job = claim(conn, &worker);
    complete_all(conn, worker.id, &[(job.ticket, None)]).unwrap();
    let id = any().unique("other").enqueue(conn).unwrap().id;
    Job::cancel(conn, id, "why").unwrap();
    Job::retry(conn, id).unwrap();
    Job::discard(conn, id).unwrap();
    job_core::housekeeping::rescue(conn, 10).unwrap();
}

#[test]
fn an_open_transaction_that_has_enqueued_keeps_nobody_waiting() {
    for level in ["READ COMMITTED", "REPEATABLE READ"] {
        let db = Db::new();
        let conn = &mut db.connect();
        any().unique("held").enqueue(conn).unwrap();
        conn.batch_execute(&format!("SET SESSION TRANSACTION ISOLATION LEVEL {level}"))
            .unwrap();
        db.execute(
            "DELETE FROM jobs_new; INSERT INTO jobs_scheduled SELECT '2999-01-01', id, 0, 0 FROM jobs",
        );
        conn.transaction(|conn| {
            any().enqueue(conn)?;
            any().unique("mine").enqueue(conn)?;
            any().unique("held").enqueue(conn)?;
            any().run_in(Duration::from_secs(60)).enqueue(conn)?;
            Job::enqueue_all(conn, [any(), any().unique("mine too"), any().unique("held")])?;
            live_beside(&db);
            Ok::<_, Error>(())
        })
        .unwrap();
        db.assert_invariants();
    }
}

#[test]
fn a_serializable_transaction_that_has_enqueued_a_plain_job_keeps_nobody_waiting() {
    let db = Db::new();
    let conn = &mut db.connect();
    conn.batch_execute("SET SESSION TRANSACTION ISOLATION LEVEL SERIALIZABLE")
        .unwrap();
    conn.transaction(|conn| {
        any().enqueue(conn)?;
        Job::enqueue_all(conn, [any(), any()])?;
        live_beside(&db);
        Ok::<_, Error>(())
    })
    .unwrap();
    db.assert_invariants();
}

#[test]
fn no_sql_mode_changes_a_jobs_life() {
    for mode in [
        "",
        "ANSI",
        "TRADITIONAL",
        "NO_BACKSLASH_ESCAPES,PIPES_AS_CONCAT,NO_ZERO_DATE",
    ] {
        let db = Db::new();
        let conn = &mut db.connect();
        conn.batch_execute(&format!("SET SESSION sql_mode = '{mode}'"))
            .unwrap();
        let worker = register(conn);
        let job = claimed(conn, &worker, echo("\\ \" ' \n").job().unique("a\\'\""));
        job.fail(conn, "\\ \" ' \n").unwrap();
        promote_all(&db, conn);
        let job = claim(conn, &worker);
        let result = Some(JsonText("\"\\\\ \\\" ' \\n\"".into()));
        complete_all(conn, worker.id, &[(job.ticket.clone(), result)]).unwrap();
        let job = Job::find(conn, job.id()).unwrap();
        assert_eq!(job.output::<String>().unwrap(), "\\ \" ' \n");
        assert_eq!(job.failures(conn).unwrap()[0].error, "\\ \" ' \n");
        assert_eq!(job.unique_key.as_deref(), Some("a\\'\""));
        assert_eq!(
            Job::filter().status(Status::Completed).load(conn).unwrap().len(),
            1
        );
        db.assert_invariants();
    }
}

#[test]
fn a_database_whose_own_character_set_is_latin1_keeps_every_character() {
    let db = Db::empty();
    let name = db.text("SELECT DATABASE()").unwrap();
    db.execute(&format!("ALTER DATABASE {name} CHARACTER SET latin1"));
    let conn = &mut db.connect();
    migrate(conn).unwrap();
    let worker = register(conn);
    let job = claimed(conn, &worker, echo("🦀 é ж").job().queue("default").unique("🦀"));
    assert!(job.args.0.contains("🦀 é ж"));
    let result = Some(JsonText("\"🦀 é ж\"".into()));
    complete_all(conn, worker.id, &[(job.ticket.clone(), result)]).unwrap();
    let job = Job::find(conn, job.id()).unwrap();
    assert_eq!(job.output::<String>().unwrap(), "🦀 é ж");
    db.assert_invariants();
}
