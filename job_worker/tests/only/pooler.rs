//! Case 40: behind PgBouncer in transaction mode, with fewer sessions than clients, so that each transaction may be in
//! another one, and neither prepared statements nor settings of a session nor LISTEN can be relied on.

use super::Conn;
use super::suite::stage::{Stage, step};
use diesel::connection::CacheSize;
use diesel::prelude::*;
use diesel::r2d2::ConnectionManager;
use job_core::{Job, NewJob, Status};
use job_test::server::{PgBouncer, PostgresServer};
use job_test::{Postgres, TestDb, eventually};
use job_worker::Worker;
use std::time::Duration;

const JOBS: usize = 300;

#[test]
fn case_40_a_worker_behind_a_pooler_performs_each_job_once() {
    let server = PostgresServer::start();
    let db = TestDb::<Postgres>::new_on(&server.url());
    db.execute("CREATE TABLE effects (job_id BIGINT NOT NULL)");
    // The proxy passes no options on, so the schema is a setting of the database.
    let schema = db.text("SELECT current_schema()::text").unwrap();
    db.execute(&format!("ALTER DATABASE postgres SET search_path = {schema}"));
    let bouncer = PgBouncer::start(&server.url(), 3);
    let url = bouncer.url(&server.url());

    let app = &mut Conn::establish(&url).unwrap();
    app.set_prepared_statement_cache_size(CacheSize::Disabled);
    app.transaction(|app| {
        let jobs = (0..JOBS).map(|number| -> NewJob {
            let job = step(if number.is_multiple_of(3) {
                "effect"
            } else {
                "fails once"
            });
            if number.is_multiple_of(5) {
                job.run_in(Duration::from_millis(50))
            } else {
                job
            }
        });
        Job::enqueue_all(app, jobs)
    })
    .unwrap();

    let stage = Stage::new(|name, run| {
        if name == "effect" {
            return run.transaction(|conn: &mut Conn| {
                diesel::sql_query("INSERT INTO effects (job_id) VALUES ($1)")
                    .bind::<diesel::sql_types::BigInt, _>(run.job_id())
                    .execute(conn)?;
                Ok(serde_json::Value::Null)
            });
        }
        anyhow::ensure!(run.attempt() > 1, "not at the first attempt");
        Ok(serde_json::Value::Null)
    });
    let worker = Worker::new(ConnectionManager::<Conn>::new(&url), stage)
        .register::<super::suite::stage::Step>()
        .threads(4)
        .pooler(true)
        .heartbeat(Duration::from_millis(200))
        .stop_on_signals(false);
    let stop = worker.handle();
    let running = std::thread::spawn(move || worker.run().unwrap());
    let conn = &mut db.connect();
    eventually("all jobs have ended", || {
        Job::counts(conn).unwrap().unfinished() == 0
    });
    stop.stop();
    let report = running.join().unwrap();

    assert_eq!(Job::counts(conn).unwrap().of(Status::Completed), JOBS as i64);
    assert_eq!((report.completed, report.refused), (JOBS as u64, 0));
    assert_eq!(
        db.count("SELECT count(DISTINCT job_id) FROM effects"),
        JOBS as i64 / 3
    );
    assert_eq!(db.count("SELECT count(*) FROM effects"), JOBS as i64 / 3);
    db.assert_invariants();
}
