use super::stage::{await_status, find, start, step, worker};
use super::{Conn, Db};
use crate::tools::capture;
use anyhow::{bail, ensure};
use crossbeam_channel::bounded;
use diesel::connection::SimpleConnection;
use job_core::{Job, Status, snooze};
use serde_json::{Value, json};
use std::any::type_name;
use std::time::Duration;

/// A database with a table of the app's, in which each effect is a row.
pub(super) fn db() -> Db {
    let db = Db::new();
    db.execute("CREATE TABLE effects (job_id BIGINT NOT NULL)");
    db
}

pub(super) fn effect(conn: &mut Conn, id: i64) -> anyhow::Result<()> {
    Ok(conn.batch_execute(&format!("INSERT INTO effects (job_id) VALUES ({id})"))?)
}

pub(super) fn effects(db: &Db) -> i64 {
    db.count("SELECT count(*) FROM effects")
}

/// Performs a job whose first attempt ends its own transaction by `end`, and goes on: it is not completed in that attempt, but
/// in the next. Of the attempts, those in `left` have left their effect.
pub(crate) fn not_completed_where_the_transaction_ended(
    db: &Db,
    left: &[i64],
    end: impl Fn(&mut Conn) -> anyhow::Result<()> + Send + Sync + 'static,
) {
    db.execute("CREATE TABLE effects (attempt BIGINT NOT NULL)");
    let id = step("pay").enqueue(&mut db.connect()).unwrap().id;
    let for_job = db.pool(1);
    let report = worker(db, move |_, run| {
        let paid = run.transaction(|conn: &mut Conn| {
            let attempt = run.attempt();
            conn.batch_execute(&format!("INSERT INTO effects VALUES ({attempt})"))?;
            if attempt == 1 {
                end(conn)?;
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
    let job = find(db, id);
    assert_eq!((job.status(), job.attempts()), (Status::Completed, 2));
    assert_eq!(db.bigints("SELECT attempt FROM effects ORDER BY attempt"), left);
    db.assert_invariants();
}

#[test]
fn an_effect_and_its_completion_are_one() {
    let db = db();
    let job = step("pay").unique("pay").enqueue(&mut db.connect()).unwrap();
    let report = worker(&db, |_, run| {
        let value = run.transaction(|conn: &mut Conn| {
            effect(conn, run.job_id())?;
            Ok(json!("paid"))
        })?;
        assert!(run.is_recorded());
        Ok(value)
    })
    .run_until_idle()
    .unwrap();
    assert_eq!((report.completed, effects(&db)), (1, 1));
    let job = find(&db, job.id);
    assert_eq!(job.output::<Value>().unwrap(), json!("paid"));
    assert_eq!(db.count("SELECT count(*) FROM unique_keys"), 0);
    db.assert_invariants();
}

#[test]
fn an_error_in_the_transaction_undoes_both() {
    let db = db();
    let job = step("pay").enqueue(&mut db.connect()).unwrap();
    worker(&db, |_, run| {
        run.transaction(|conn: &mut Conn| {
            effect(conn, run.job_id())?;
            bail!("the bank said no")
        })
    })
    .run_until_idle()
    .unwrap();
    let job = find(&db, job.id);
    assert_eq!((job.status(), effects(&db)), (Status::Failed, 0));
    assert_eq!(job.last_error(), Some("the bank said no"));
    db.assert_invariants();
}

#[test]
fn a_wish_from_inside_the_transaction_is_heard() {
    let db = db();
    let job = step("pay").enqueue(&mut db.connect()).unwrap();
    worker(&db, |_, run| {
        run.transaction(|conn: &mut Conn| {
            effect(conn, run.job_id())?;
            Err::<Value, _>(snooze(Duration::from_secs(3600)))
        })
    })
    .run_until_idle()
    .unwrap();
    assert_eq!((find(&db, job.id).status(), effects(&db)), (Status::Scheduled, 0));
    db.assert_invariants();
}

#[test]
fn a_job_that_was_cancelled_meanwhile_has_no_effect() {
    let db = db();
    let job = step("pay").enqueue(&mut db.connect()).unwrap();
    let (began, begun) = bounded::<()>(0);
    let (go, gone) = bounded::<()>(0);
    let started = start(worker(&db, move |_, run| {
        began.send(())?;
        gone.recv()?;
        run.transaction(|conn: &mut Conn| {
            effect(conn, run.job_id())?;
            Ok(json!("paid"))
        })
    }));
    begun.recv().unwrap();
    Job::cancel(&mut db.connect(), job.id, "the customer went away").unwrap();
    go.send(()).unwrap();
    let report = started.stop();
    assert_eq!((report.completed, report.refused, effects(&db)), (0, 1, 0));
    let job = find(&db, job.id);
    assert_eq!(
        (job.status(), job.last_error()),
        (Status::Cancelled, Some("the customer went away"))
    );
    db.assert_invariants();
}

#[test]
fn a_plain_completion_of_a_cancelled_job_is_refused() {
    let db = db();
    let job = step("pay").enqueue(&mut db.connect()).unwrap();
    let (began, begun) = bounded::<()>(0);
    let (go, gone) = bounded::<()>(0);
    let started = start(worker(&db, move |_, _| {
        began.send(())?;
        gone.recv()?;
        Ok(json!("paid"))
    }));
    begun.recv().unwrap();
    Job::cancel(&mut db.connect(), job.id, "the customer went away").unwrap();
    go.send(()).unwrap();
    let report = started.stop();
    assert_eq!((report.completed, report.refused), (0, 1));
    assert_eq!(find(&db, job.id).status(), Status::Cancelled);
    db.assert_invariants();
}

#[test]
fn a_closure_that_asks_for_another_type_of_connection_is_told_the_right_one() {
    capture::begin();
    let db = Db::new();
    let job = step("wrong").enqueue(&mut db.connect()).unwrap();
    let report = worker(&db, |_, run| run.connection(|_: &mut String| Ok(json!(null))))
        .run_until_idle()
        .unwrap();
    assert_eq!((report.failed, report.retried), (1, 0), "{report}");
    let job = find(&db, job.id);
    let error = job.last_error().unwrap();
    let name = type_name::<Conn>();
    let short = name.rsplit("::").next().unwrap();
    for part in [name, "String", &format!("write `|conn: &mut {short}| …`")] {
        assert!(error.contains(part), "{error}");
    }
    let logged = capture::lines_with(error);
    assert!(logged.iter().any(|line| line.starts_with("ERROR")), "{logged:?}");
    db.assert_invariants();
}

#[test]
fn an_error_after_the_transaction_changes_nothing() {
    let db = db();
    let conn = &mut db.connect();
    let ids = Job::enqueue_all(conn, ["error", "panic", "snooze"].map(step)).unwrap();
    let report = worker(&db, |name, run| {
        run.transaction(|conn: &mut Conn| {
            effect(conn, run.job_id())?;
            Ok(json!("paid"))
        })?;
        match name {
            "panic" => panic!("too late"),
            "snooze" => Err(snooze(Duration::ZERO)),
            _ => bail!("too late"),
        }
    })
    .run_until_idle()
    .unwrap();
    assert_eq!(
        (report.completed, report.refused, report.retried, effects(&db)),
        (3, 0, 0, 3)
    );
    for id in ids {
        assert_eq!(find(&db, id).output::<Value>().unwrap(), json!("paid"));
    }
    db.assert_invariants();
}

#[test]
fn a_second_transaction_of_the_same_attempt_is_refused() {
    let db = db();
    let job = step("pay").enqueue(&mut db.connect()).unwrap();
    let report = worker(&db, |_, run| {
        let pay = |conn: &mut Conn| {
            effect(conn, run.job_id())?;
            Ok(json!("paid"))
        };
        run.transaction(pay)?;
        let again = run.transaction(pay).unwrap_err().to_string();
        ensure!(again.contains("no longer this worker's"), "{again}");
        Ok(json!("ignored"))
    })
    .run_until_idle()
    .unwrap();
    assert_eq!((report.completed, effects(&db)), (1, 1));
    assert_eq!(find(&db, job.id).output::<Value>().unwrap(), json!("paid"));
    db.assert_invariants();
}

#[test]
fn a_job_can_ask_whether_it_is_still_its_own() {
    let db = db();
    let job = step("ask").enqueue(&mut db.connect()).unwrap();
    let (began, begun) = bounded::<bool>(0);
    let (go, gone) = bounded::<()>(0);
    let started = start(worker(&db, move |_, run| {
        for _ in 0..2 {
            began.send(run.connection(|conn: &mut Conn| Ok(run.is_mine(conn)?))?)?;
            gone.recv()?;
        }
        Ok(json!(null))
    }));
    assert!(begun.recv().unwrap());
    Job::cancel(&mut db.connect(), job.id, "enough").unwrap();
    go.send(()).unwrap();
    assert!(!begun.recv().unwrap());
    go.send(()).unwrap();
    assert_eq!(started.stop().refused, 1);
    await_status(&db, job.id, Status::Cancelled);
    db.assert_invariants();
}

#[test]
fn a_transaction_that_a_job_has_left_open_takes_nothing_of_the_next_job_with_it() {
    for in_transaction in [false, true] {
        let db = db();
        let ids = Job::enqueue_all(&mut db.connect(), ["leaky", "innocent"].map(step)).unwrap();
        let report = worker(&db, move |name, run| {
            let work = |conn: &mut Conn| {
                effect(conn, run.job_id())?;
                Ok(json!(null))
            };
            if name == "leaky" {
                run.connection(|conn: &mut Conn| {
                    conn.batch_execute("BEGIN")?;
                    work(conn)
                })
            } else if in_transaction {
                run.transaction(work)
            } else {
                run.connection(work)
            }
        })
        .threads(1)
        .pool_size(1)
        .run_until_idle()
        .unwrap();
        assert_eq!((report.completed, report.retried), (2, 0));
        // What the leaky one left open is rolled back.
        assert_eq!(db.bigints("SELECT job_id FROM effects"), [ids[1]]);
        db.assert_invariants();
    }
}
