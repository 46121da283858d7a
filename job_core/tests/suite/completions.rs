use super::Db;
use super::support::{any, claimed, promote_all, register};
use job_core::{ClaimedJob, Job, JsonText, Status, Ticket, complete_all, release_all};

type Completion = (Ticket, Option<JsonText>);

fn plain(job: &ClaimedJob) -> Completion {
    (job.ticket.clone(), None)
}

fn with(job: &ClaimedJob, json: &str) -> Completion {
    (job.ticket.clone(), Some(JsonText(json.to_owned())))
}

fn sorted(mut ids: Vec<i64>) -> Vec<i64> {
    ids.sort_unstable();
    ids
}

#[test]
fn many_completions_are_recorded_each_with_its_own_result() {
    let db = Db::new();
    let conn = &mut db.connect();
    let worker = register(conn);
    assert_eq!(complete_all(conn, worker.id, &[]).unwrap(), [0_i64; 0]);
    let jobs: Vec<ClaimedJob> = (0..5)
        .map(|n| claimed(conn, &worker, if n == 2 { any().unique("key") } else { any() }))
        .collect();
    let mut completions = vec![
        with(&jobs[3], "\"\\u00e9 🦀 \\\" \\\\ \\n\""),
        plain(&jobs[0]),
        with(&jobs[2], "{\"a\": [1, null, 2.5, true]}"),
        with(&jobs[1], "12345678901234567890123"),
        with(&jobs[4], "\"null\""),
    ];
    completions[1].1 = Some(JsonText("[]".into()));
    let ids: Vec<i64> = jobs.iter().map(ClaimedJob::id).collect();
    assert_eq!(sorted(complete_all(conn, worker.id, &completions).unwrap()), ids);
    let mut output = |at: usize| -> serde_json::Value {
        let job = Job::find(conn, ids[at]).unwrap();
        assert_eq!(
            (job.status(), job.attempts(), job.worker()),
            (Status::Completed, 1, Some(worker.id))
        );
        assert_eq!(job.started_at(), Some(jobs[at].ticket.started_at));
        assert!(job.finished_at().unwrap() >= job.started_at().unwrap());
        job.output().unwrap()
    };
    assert_eq!(output(3), "é 🦀 \" \\ \n");
    assert_eq!(output(2), serde_json::json!({"a": [1, null, 2.5, true]}));
    assert_eq!((output(0), output(4)), (serde_json::json!([]), "null".into()));
    assert_eq!(db.count("SELECT count(*) FROM unique_keys"), 0);
    db.assert_invariants();
}

#[test]
fn a_completion_that_is_there_twice_is_recorded_once() {
    let db = Db::new();
    let conn = &mut db.connect();
    let worker = register(conn);
    for keyed in [false, true] {
        let job = if keyed { any().unique("key") } else { any() };
        let job = claimed(conn, &worker, job);
        let other = claimed(conn, &worker, any());
        for twice in [
            vec![plain(&job), plain(&other), plain(&job)],
            vec![with(&job, "1"), with(&job, "2")],
        ] {
            let recorded = complete_all(conn, worker.id, &twice).unwrap();
            assert!(recorded.contains(&job.id()), "{recorded:?}");
        }
    }
    let job = claimed(conn, &worker, any());
    let twice = [with(&job, "1"), with(&job, "1")];
    assert_eq!(complete_all(conn, worker.id, &twice).unwrap(), [job.id()]);
    db.assert_invariants();
}

#[test]
fn a_completion_whose_answer_was_lost_is_told_as_recorded_again() {
    let db = Db::new();
    let conn = &mut db.connect();
    let worker = register(conn);
    let jobs: Vec<ClaimedJob> = (0..3).map(|_| claimed(conn, &worker, any())).collect();
    let ids: Vec<i64> = jobs.iter().map(ClaimedJob::id).collect();
    let all: Vec<Completion> = jobs.iter().map(plain).collect();
    complete_all(conn, worker.id, &all[..2]).unwrap();
    assert_eq!(sorted(complete_all(conn, worker.id, &all).unwrap()), ids);
    assert_eq!(sorted(complete_all(conn, worker.id, &all).unwrap()), ids);
    db.assert_invariants();
}

#[test]
fn a_job_that_ended_otherwise_is_not_told_as_completed() {
    let db = Db::new();
    let conn = &mut db.connect();
    let worker = register(conn);
    let cancelled = claimed(conn, &worker, any());
    Job::cancel(conn, cancelled.id(), "why").unwrap();
    let failed = claimed(conn, &worker, any().max_attempts(1));
    failed.fail(conn, "no").unwrap();
    let completions = [plain(&cancelled), plain(&failed)];
    assert_eq!(complete_all(conn, worker.id, &completions).unwrap(), [0_i64; 0]);
    db.assert_invariants();
}

#[test]
fn foreign_tickets_are_not_recorded() {
    let db = Db::new();
    let conn = &mut db.connect();
    let (mine, theirs) = (register(conn), register(conn));
    let my_job = claimed(conn, &mine, any());
    let their_job = claimed(conn, &theirs, any());
    let completions = [plain(&their_job), plain(&my_job)];
    assert_eq!(complete_all(conn, mine.id, &completions).unwrap(), [my_job.id()]);
    assert_eq!(
        Job::find(conn, their_job.id()).unwrap().status(),
        Status::Processing
    );
    their_job.complete(conn, &()).unwrap();
    db.assert_invariants();
}

#[test]
fn attempts_of_all_sorts_are_completed_in_one_call() {
    let db = Db::new();
    let conn = &mut db.connect();
    let worker = register(conn);
    let mut completions = Vec::new();
    for failures in 0..4 {
        let mut job = claimed(conn, &worker, any());
        let first = job.clone();
        for _ in 0..failures {
            job.fail(conn, "no").unwrap();
            promote_all(&db, conn);
            job = super::support::claim(conn, &worker);
        }
        completions.push(with(&job, &failures.to_string()));
        if failures == 3 {
            // The same job in an attempt that is over.
            completions.insert(0, with(&first, "\"old\""));
        }
    }
    assert_eq!(complete_all(conn, worker.id, &completions).unwrap().len(), 4);
    let jobs = Job::filter().status(Status::Completed).load(conn).unwrap();
    let outputs: Vec<i32> = jobs.iter().rev().map(|job| job.output().unwrap()).collect();
    assert_eq!(outputs, [0, 1, 2, 3]);
    let attempts: Vec<i32> = jobs.iter().rev().map(Job::attempts).collect();
    assert_eq!(attempts, [1, 2, 3, 4]);
    db.assert_invariants();
}

#[test]
fn big_results_go_in_pieces() {
    let db = Db::new();
    let conn = &mut db.connect();
    let worker = register(conn);
    let quotes = format!("\"{}\"", "\\\"🦀".repeat(170_000));
    assert!(quotes.len() < job_core::limits::MAX_RESULT_BYTES);
    let completions: Vec<Completion> = (0..12)
        .map(|_| claimed(conn, &worker, any()))
        .map(|job| with(&job, &quotes))
        .collect();
    assert_eq!(complete_all(conn, worker.id, &completions).unwrap().len(), 12);
    for job in Job::filter().load(conn).unwrap() {
        assert_eq!(job.output::<String>().unwrap(), "\"🦀".repeat(170_000));
    }
    db.assert_invariants();
}

#[test]
fn jobs_are_handed_back_all_at_once_and_keep_their_place() {
    let db = Db::new();
    let conn = &mut db.connect();
    let worker = register(conn);
    let jobs: Vec<ClaimedJob> = (0..5).map(|_| claimed(conn, &worker, any())).collect();
    let last = any().enqueue(conn).unwrap().id;
    jobs[0].complete(conn, &()).unwrap();
    let mut tickets: Vec<Ticket> = jobs.iter().rev().map(|job| job.ticket.clone()).collect();
    // One that stands twice, an older one for the same job, and one that somebody else has made up.
    tickets.push(tickets[0].clone());
    for (attempts, worker) in [(-1, 0), (0, 1)] {
        let mut ticket = tickets[1].clone();
        ticket.attempts += attempts;
        ticket.worker += worker;
        tickets.push(ticket);
    }
    assert_eq!(release_all(conn, &tickets).unwrap(), 4);
    assert_eq!(release_all(conn, &tickets).unwrap(), 0);
    assert_eq!(release_all(conn, &[]).unwrap(), 0);
    let again: Vec<ClaimedJob> = std::iter::from_fn(|| Job::find_new_job(conn, &worker).unwrap()).collect();
    let numbers = |job: &ClaimedJob| (job.ticket.attempts, job.ticket.uncharged);
    assert!(again[..4].iter().all(|job| numbers(job) == (2, 1)));
    let order: Vec<i64> = again.iter().map(ClaimedJob::id).collect();
    let mut expected: Vec<i64> = jobs[1..].iter().map(ClaimedJob::id).collect();
    expected.push(last);
    assert_eq!(order, expected);
    db.assert_invariants();
}
