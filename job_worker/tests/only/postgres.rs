//! Notifications, and a server that is restarted or refuses to write; what a COMMIT of a job's own leaves; passwords.

#[path = "held.rs"]
mod held; // rows that an app has locked and does not let go
#[path = "read_only.rs"]
mod read_only; // a database that is read-only for a while
#[path = "refused.rs"]
mod refused; // outcomes that the database never takes

use super::suite::stage::{Notes, Stage, Step, await_status, start, step};
use super::suite::transactions::not_completed_where_the_transaction_ended;
use super::{Conn, Db};
use crate::tools::capture;
use crate::tools::proxy::Proxy;
use crossbeam_channel::bounded;
use diesel::connection::SimpleConnection;
use diesel::r2d2::ConnectionManager;
use job_core::{Job, Status};
use job_test::eventually;
use job_test::server::PostgresServer;
use job_worker::{Worker, WorkerError};
use read_only::read_only_for_a_while;
use serde_json::json;
use std::time::Duration;

/// A worker that would find nothing for an hour if it were not notified.
fn sleepy(url: &str) -> Worker<Conn, Stage> {
    let stage = Stage::new(|_, _| Ok(json!(null)));
    Worker::new(ConnectionManager::<Conn>::new(url), stage)
        .register::<Step>()
        .poll(Duration::from_secs(3600))
        .stop_on_signals(false)
}

#[test]
fn a_notification_wakes_the_worker() {
    let db = Db::new();
    let started = start(sleepy(db.url()));
    let conn = &mut db.connect();
    for number in 0..5 {
        // A job without a notification of its own, within the pause of the sender, is found by the second look.
        let id = step(number.to_string()).enqueue(conn).unwrap().id;
        await_status(&db, id, Status::Completed);
    }
    assert_eq!(started.stop().completed, 5);
    db.assert_invariants();
}

/// Of jobs that come one right after the other most send no notification; the end of the one before makes the worker look,
/// which may be too early for the next.
#[test]
fn jobs_without_a_notification_of_their_own_are_found() {
    let db = Db::new();
    let (done, ended) = bounded(1);
    let stage = Stage::new(move |_, _| {
        done.send(())?;
        Ok(json!(null))
    });
    let started = start(
        Worker::new(ConnectionManager::<Conn>::new(db.url()), stage)
            .register::<Step>()
            .poll(Duration::from_secs(3600))
            .stop_on_signals(false),
    );
    let conn = &mut db.connect();
    for number in 0..100 {
        step(number.to_string()).enqueue(conn).unwrap();
        let ended = ended.recv_timeout(Duration::from_secs(60));
        assert!(ended.is_ok(), "job {number} is not found");
    }
    assert_eq!(started.stop().completed, 100);
    db.assert_invariants();
}

/// However a worker learns of jobs: of those that came together it takes the most urgent first.
#[test]
fn what_comes_together_is_performed_in_the_order_of_the_queues_and_priorities() {
    let db = Db::new();
    let notes = Notes::default();
    let noted = notes.clone();
    let stage = Stage::new(move |name, _| {
        noted.add(name);
        Ok(json!(null))
    });
    let started = start(
        Worker::new(ConnectionManager::<Conn>::new(db.url()), stage)
            .register::<Step>()
            .queues(["first", "second"])
            .threads(1)
            .stop_on_signals(false),
    );
    let conn = &mut db.connect();
    for round in 1..=5 {
        let jobs = [("second", -9), ("first", 5), ("first", -5)];
        let jobs = jobs.map(|(queue, priority)| step(priority.to_string()).queue(queue).priority(priority));
        Job::enqueue_all(conn, jobs).unwrap();
        eventually("they are performed", || notes.all().len() == 3 * round);
    }
    assert_eq!(started.stop().completed, 15);
    assert_eq!(notes.all(), ["-5", "5", "-9"].repeat(5));
    db.assert_invariants();
}

/// The worker hears at once, and costs nothing while it hears nothing, where it waits on the socket of its connection.
#[cfg(target_os = "linux")]
#[test]
fn the_listener_waits_on_the_socket_of_each_of_its_connections() {
    capture::begin();
    let waits = || capture::lines_with("waits on the connection's socket").len();
    let (db, before) = (Db::new(), waits());
    let proxy = Proxy::to(db.url());
    let started = start(sleepy(proxy.url()));
    // Other tests of this process, if they run beside this one, have listeners too.
    eventually("it waits", || waits() > before);
    let before = waits();
    proxy.cut();
    proxy.mend();
    eventually("it waits again", || waits() > before);
    let id = step("heard").enqueue(&mut db.connect()).unwrap().id;
    await_status(&db, id, Status::Completed);
    assert_eq!(started.stop().completed, 1);
    db.assert_invariants();
}

/// Case 38: what was enqueued before the worker listened is found by the look after LISTEN.
#[test]
fn what_was_enqueued_before_the_worker_listens_is_found() {
    let db = Db::new();
    let proxy = Proxy::to(db.url());
    let conn = &mut db.connect();
    let started = start(sleepy(proxy.url()));
    for round in 0..3 {
        eventually("it listens", || {
            proxy
                .sent()
                .iter()
                .filter(|sent| sent.windows(6).any(|text| text == b"LISTEN"))
                .count()
                > round
        });
        proxy.cut();
        // Nobody hears this one.
        let id = step("unheard").enqueue(conn).unwrap().id;
        proxy.mend();
        await_status(&db, id, Status::Completed);
    }
    assert_eq!(started.stop().completed, 3);
    db.assert_invariants();
}

/// Case 37: a listener whose connection is half dead hears nothing; polling goes on.
#[test]
fn polling_goes_on_while_the_listener_is_deaf() {
    let db = Db::new();
    let proxy = Proxy::to(db.url());
    proxy.swallow("LISTEN");
    let started = start(sleepy(proxy.url()).poll(Duration::from_millis(20)));
    eventually("the listener waits for an answer", || proxy.swallowed() == 1);
    let id = step("polled").enqueue(&mut db.connect()).unwrap().id;
    await_status(&db, id, Status::Completed);
    assert_eq!(started.stop().completed, 1);
    db.assert_invariants();
}

/// Case 39: a notification carries no name, so that none can be too long for it.
#[test]
fn any_name_of_a_queue_is_notified() {
    let db = Db::new();
    let names = [
        "q".repeat(255),
        "🦀".repeat(63),
        "é".repeat(127),
        "a'b\"c".to_owned(),
    ];
    let started = start(sleepy(db.url()).queues(names.clone()));
    let conn = &mut db.connect();
    for name in &names {
        let id = step("named").queue(name).enqueue(conn).unwrap().id;
        await_status(&db, id, Status::Completed);
    }
    assert_eq!(started.stop().completed, 4);
    db.assert_invariants();
}

/// Case 36: the server crashes while the worker works, and comes back.
#[test]
fn a_worker_carries_on_after_the_server_crashed() {
    let server = PostgresServer::start();
    let db = Db::new_on(&server.url());
    let notes = Notes::default();
    let noted = notes.clone();
    let stage = Stage::new(move |name, run| {
        noted.add(name);
        Ok(json!(run.job_id()))
    });
    let started = start(
        Worker::new(ConnectionManager::<Conn>::new(db.url()), stage)
            .register::<Step>()
            .poll(Duration::from_millis(20))
            .stop_on_signals(false),
    );
    for round in 0..2 {
        let ids = Job::enqueue_all(
            &mut db.connect(),
            (0..500).map(|job| step(format!("{round}.{job}"))),
        )
        .unwrap();
        await_status(&db, ids[50], Status::Completed);
        server.stop_immediate();
        server.start_again();
        let conn = &mut db.connect();
        eventually("all are completed", || {
            Job::counts(conn).unwrap().unfinished() == 0
        });
        for id in ids {
            assert_eq!(Job::find(conn, id).unwrap().output::<i64>().unwrap(), id);
        }
    }
    let report = started.stop();
    assert_eq!((report.completed, report.refused, report.retried), (1_000, 0, 0));
    // Nobody died, so each was performed once.
    assert_eq!(notes.all().len(), 1_000);
    db.assert_invariants();
}

/// A password in the URL is not logged, whatever goes wrong.
#[test]
fn the_password_of_the_url_never_reaches_the_log() {
    capture::begin();
    let db = Db::new();
    let proxy = Proxy::to(db.url());
    let secret = "s3cret-of-the-url";
    // The server of these tests asks nobody for a password.
    let url = proxy.url().replacen('@', &format!(":{secret}@"), 1);
    let id = step("one").enqueue(&mut db.connect()).unwrap().id;
    let started = start(sleepy(&url).poll(Duration::from_millis(20)));
    await_status(&db, id, Status::Completed);
    proxy.cut();
    let tried = proxy.accepted();
    eventually("it tries again", || proxy.accepted() >= tried + 5);
    proxy.mend();
    started.stop();
    assert!(!capture::lines_with("trying again").is_empty());
    let leaks = capture::lines_with(secret);
    assert!(leaks.is_empty(), "{leaks:?}");
    db.assert_invariants();
}

/// As after a failover, or on a disk that is nearly full.
#[test]
fn a_database_that_is_read_only_for_a_while_changes_no_outcome() {
    capture::begin();
    let server = PostgresServer::start();
    let db = Db::new_on(&server.url());
    let admin = &mut db.connect();
    let mut read_only = |is_on: bool| {
        let (session, system) = if is_on {
            ("on", "SET default_transaction_read_only = on")
        } else {
            ("off", "RESET default_transaction_read_only")
        };
        // The session that says so must be able to.
        admin
            .batch_execute("SET default_transaction_read_only = off")
            .unwrap();
        admin.batch_execute(&format!("ALTER SYSTEM {system}")).unwrap();
        admin.batch_execute("SELECT pg_reload_conf()").unwrap();
        eventually("new sessions have the setting", || {
            db.text("SELECT current_setting('transaction_read_only')")
                .as_deref()
                == Some(session)
        });
    };
    read_only_for_a_while(&db, db.url(), "read-only transaction", &mut read_only);
}

/// A COMMIT of one's own ends the transaction: what was done before it stands for itself, and the completion does not.
#[test]
fn a_raw_commit_does_not_complete_the_job_in_that_attempt() {
    let db = Db::new();
    not_completed_where_the_transaction_ended(&db, &[1, 2], |conn| Ok(conn.batch_execute("COMMIT")?));
}

/// libpq takes a part of such a password for a host or a port, and names it.
#[test]
fn the_password_of_a_malformed_url_is_in_no_error() {
    for url in [
        "postgres://shop:s3cret/word@127.0.0.1:1/db",
        "postgres://shop:half@s3cret@127.0.0.1:1/db",
        "postgres://shop:half%s3cret@127.0.0.1:1/db",
        "postgres://shop:s3cret#word@127.0.0.1:1/db",
        "postgres://shop:s3cret?word@127.0.0.1:1/db",
        "postgres://shop:half word:s3cret@127.0.0.1:1/db",
        "host=127.0.0.1 port=1 password=half s3cret",
        "host=127.0.0.1 port=1 password = s3cret word",
    ] {
        let error = sleepy(url).run().unwrap_err();
        assert!(matches!(error, WorkerError::Unreachable(_)), "{error}");
        let shown = format!("{error} {error:?} {error:#?}");
        assert!(!shown.contains("s3cret"), "{url}: {shown}");
    }
}

#[test]
fn an_outcome_that_is_refused_whatever_it_is_does_not_hold_up_others() {
    refused::others_are_recorded_beside_it(
        "CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
           IF NEW.job_id = ID THEN RAISE EXCEPTION 'never'; END IF; RETURN NEW; END $$;
         CREATE TRIGGER refuse BEFORE INSERT ON jobs_finished FOR EACH ROW EXECUTE FUNCTION refuse()",
        "DROP TRIGGER refuse ON jobs_finished",
    );
}
