use super::super::suite::support::{any, claim, promote_all, register};
use super::Db;
use diesel::PgConnection;
use diesel::prelude::*;
use diesel::sql_types::{Integer, Text};
use job_core::{Job, Outcome, Status, WorkerRow, claim_first, complete_all, housekeeping, lanes};
use job_db::Database;
use std::time::Duration;

#[derive(QueryableByName)]
struct Prepared {
    #[diesel(sql_type = Text)]
    name: String,
    #[diesel(sql_type = Text)]
    statement: String,
    #[diesel(sql_type = Integer)]
    parameters: i32,
}

#[derive(QueryableByName)]
struct Line {
    #[diesel(sql_type = Text, column_name = "QUERY PLAN")]
    line: String,
}

/// The tables that may be big. The workers are few.
const BIG: [&str; 7] = [
    "jobs",
    "jobs_scheduled",
    "jobs_new",
    "jobs_processing",
    "jobs_finished",
    "job_failures",
    "unique_keys",
];

/// Every statement that this session has prepared, with its plan.
fn plans(conn: &mut PgConnection) -> Vec<(String, String)> {
    let prepared: Vec<Prepared> = diesel::sql_query(
        "SELECT name, statement, cardinality(parameter_types) AS parameters FROM pg_prepared_statements
         WHERE statement NOT LIKE '%pg_prepared_statements%' AND statement ~ '^(SELECT|WITH|INSERT|UPDATE|DELETE)'",
    )
    .load(conn)
    .unwrap();
    prepared
        .into_iter()
        .map(|prepared| {
            let nulls = vec!["NULL"; prepared.parameters as usize].join(", ");
            let binds = if nulls.is_empty() {
                nulls
            } else {
                format!("({nulls})")
            };
            let lines: Vec<Line> = diesel::sql_query(format!("EXPLAIN EXECUTE \"{}\"{binds}", prepared.name))
                .load(conn)
                .unwrap();
            let plan: Vec<String> = lines.into_iter().map(|line| line.line).collect();
            (prepared.statement, plan.join("\n"))
        })
        .collect()
}

/// Uses every verb of the hot paths once, on a session of a worker.
fn use_every_verb(db: &Db, conn: &mut PgConnection) {
    let worker = register(conn);
    any().enqueue(conn).unwrap();
    Job::enqueue_all(
        conn,
        [any(), any().unique("key"), any().run_in(Duration::from_secs(60))],
    )
    .unwrap();
    any().unique("key").enqueue(conn).unwrap();
    lanes(conn, &worker.queues).unwrap();
    let plain = claim(conn, &worker);
    complete_all(conn, worker.id, &[(plain.ticket, None)]).unwrap();
    let full = claim(conn, &worker);
    let result = Some(job_core::JsonText("1".into()));
    complete_all(conn, worker.id, &[(full.ticket.clone(), result)]).unwrap();
    complete_all(conn, worker.id, &[(full.ticket, None)]).unwrap();
    let keyed = claim(conn, &worker);
    keyed.fail(conn, "again").unwrap();
    promote_all(db, conn);
    let job = claim(conn, &worker);
    job.release(conn).unwrap();
    let mut jobs = claim_first(conn, worker.id, &worker.queues, &worker.kinds, 1).unwrap();
    let job = jobs.remove(0);
    job.ticket
        .record(conn, &Outcome::Cancelled("enough".into()))
        .unwrap();
    Job::retry(conn, job.id()).unwrap();
    Job::cancel(conn, job.id(), "enough").unwrap();
    Job::find(conn, job.id()).unwrap().failures(conn).unwrap();
    WorkerRow::beat(conn, worker.id).unwrap();
    housekeeping::next_due(conn).unwrap();
    housekeeping::prune(conn, Status::Cancelled, Duration::ZERO, 0, 10).unwrap();
    housekeeping::prune(conn, Status::Failed, Duration::ZERO, 0, 10).unwrap();
    Job::discard(conn, job.id()).unwrap_or_default();
}

fn no_statement_scans_a_big_table(statistics: &str) {
    let db = Db::new();
    db.execute(statistics);
    let conn = &mut db.connect();
    diesel::pg::Pg::prepare_session(conn, Duration::from_secs(60)).unwrap();
    use_every_verb(&db, conn);
    let plans = plans(conn);
    assert!(plans.len() > 20, "{}", plans.len());
    for (statement, plan) in plans {
        for table in BIG {
            let scans = plan
                .lines()
                .any(|line| line.contains(&format!("Seq Scan on {table} ")) || line.contains("Disabled"));
            assert!(!scans, "{statement}\n\n{plan}");
        }
    }
    db.assert_invariants();
}

#[test]
fn case_08_no_statement_of_a_worker_scans_a_table_that_was_never_analysed() {
    no_statement_scans_a_big_table("SELECT 1");
}

#[test]
fn case_08_no_statement_of_a_worker_scans_a_table_that_was_analysed_while_it_was_empty() {
    no_statement_scans_a_big_table("ANALYZE");
}
