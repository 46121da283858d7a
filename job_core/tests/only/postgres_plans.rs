use super::super::suite::support::{any, claim, promote_all, register};
use super::Db;
use diesel::PgConnection;
use diesel::prelude::*;
use diesel::sql_types::{Integer, Text};
use job_core::{
    ClaimRequest, Job, JobBackend, Outcome, Status, Ticket, WorkerRow, claim_first, claim_inside,
    complete_all, discard_all, housekeeping, lanes,
};
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
    complete_all(conn, worker.id, &[(full.ticket.clone(), None)]).unwrap();
    let mut twice = full.ticket.clone();
    twice.attempts += 1;
    discard_all(conn, worker.id, &[full.ticket, twice]).unwrap();
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

/// How many rows `work` reads from the tables, by the session's own counters.
fn rows_read<T>(conn: &mut PgConnection, work: impl FnOnce(&mut PgConnection) -> T) -> (i64, T) {
    let done = work(conn);
    let read = diesel::select(diesel::dsl::sql::<diesel::sql_types::BigInt>(
        "(SELECT (sum(seq_tup_read) + sum(coalesce(idx_tup_fetch, 0)))::bigint FROM pg_stat_xact_user_tables
          WHERE schemaname = current_schema())",
    ))
    .get_result(conn)
    .unwrap();
    (read, done)
}

const MANY: &str = "
    ALTER TABLE jobs SET (autovacuum_enabled = false);
    ALTER TABLE jobs_new SET (autovacuum_enabled = false);
    ALTER TABLE jobs_scheduled SET (autovacuum_enabled = false);
    ALTER TABLE jobs_finished SET (autovacuum_enabled = false);
    INSERT INTO jobs (kind, queue, priority, max_attempts, args)
        SELECT 'echo', 'default', 0, 12, '{}' FROM generate_series(1, 1000000);
    INSERT INTO jobs_new (queue, priority, job_id, kind, attempts, uncharged)
        SELECT queue, priority, id, kind, 0, 0 FROM jobs WHERE id % 2 = 0;
    INSERT INTO jobs_scheduled (run_at, job_id, attempts, uncharged)
        SELECT now() + (id - 100) * interval '1 hour', id, 0, 0 FROM jobs WHERE id % 4 = 1;
    INSERT INTO jobs_finished (job_id, status, attempts, uncharged, finished_at)
        SELECT id, 3, 1, 0, now() - interval '1 year' FROM jobs WHERE id % 4 = 3";

/// Each verb of a worker's in a transaction of its own, with the most rows that it may read for 100 jobs: a few of each
/// table, and never a share of what there is.
fn each_verb_reads_little(db: &Db, when: &str) {
    let conn = &mut db.connect();
    diesel::pg::Pg::prepare_session(conn, Duration::from_secs(60)).unwrap();
    let worker = register(conn);
    let read_little = |what: &str, (read, done): (i64, usize)| {
        assert!(done > 0, "{when}: {what} did nothing");
        assert!(read <= 1_000, "{when}: {what} reads {read} rows");
    };
    let request = ClaimRequest {
        worker: worker.id,
        queue: "default",
        priority: 0,
        after: 0,
        kinds: &worker.kinds,
        limit: 100,
    };
    let transaction = |conn: &mut PgConnection, work: &mut dyn FnMut(&mut PgConnection) -> usize| {
        conn.transaction(|conn| diesel::QueryResult::Ok(rows_read(conn, work)))
            .unwrap()
    };
    read_little(
        "lanes",
        transaction(conn, &mut |conn| lanes(conn, &worker.queues).unwrap().len()),
    );
    let mut tickets: Vec<Ticket> = Vec::new();
    read_little(
        "claim",
        transaction(conn, &mut |conn| {
            let jobs = claim_inside(conn, &request).unwrap();
            tickets = jobs.into_iter().map(|job| job.ticket).collect();
            tickets.len()
        }),
    );
    read_little(
        "claim many",
        transaction(conn, &mut |conn| {
            diesel::pg::Pg::claim_many(conn, &request).unwrap().len()
        }),
    );
    let completions: Vec<_> = tickets.drain(50..).map(|ticket| (ticket, None)).collect();
    read_little(
        "complete",
        transaction(conn, &mut |conn| {
            complete_all(conn, worker.id, &completions).unwrap().len()
        }),
    );
    read_little(
        "discard",
        transaction(conn, &mut |conn| {
            discard_all(conn, worker.id, &tickets).unwrap().len()
        }),
    );
    read_little(
        "next_due",
        transaction(conn, &mut |conn| {
            housekeeping::next_due(conn).unwrap().map_or(0, |_| 1)
        }),
    );
    read_little(
        "promote",
        transaction(conn, &mut |conn| housekeeping::promote(conn, 5).unwrap()),
    );
    read_little(
        "prune",
        transaction(conn, &mut |conn| {
            housekeeping::prune(conn, Status::Completed, Duration::from_secs(60), 0, 100)
                .unwrap()
                .removed
        }),
    );
    read_little(
        "enqueue",
        transaction(conn, &mut |conn| usize::from(any().enqueue(conn).is_ok())),
    );
    read_little(
        "enqueue_all",
        transaction(conn, &mut |conn| {
            Job::enqueue_all(conn, [any(), any().unique("key")])
                .unwrap()
                .len()
        }),
    );
    db.assert_invariants();
}

#[test]
fn case_08_a_worker_reads_little_of_a_million_jobs_whatever_is_known_of_them() {
    let db = Db::new();
    // Statistics from when there was nothing, then from when there is much.
    db.execute("ANALYZE");
    db.execute(MANY);
    each_verb_reads_little(&db, "analysed while empty");
    db.execute("ANALYZE");
    each_verb_reads_little(&db, "analysed while full");
}

#[test]
fn case_08_a_worker_reads_little_of_a_million_jobs_that_were_never_analysed() {
    let db = Db::new();
    db.execute(MANY);
    each_verb_reads_little(&db, "never analysed");
}
