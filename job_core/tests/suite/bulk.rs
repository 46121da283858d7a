use super::Db;
use super::support::{Echo, Mail, any, echo};
use job_core::{Job, NewJob, Perform, Status};
use std::collections::BTreeSet;
use std::time::Duration;

#[test]
fn a_bulk_of_none_or_one_is_a_bulk() {
    let db = Db::new();
    let conn = &mut db.connect();
    assert_eq!(Job::enqueue_all(conn, Vec::<Echo>::new()).unwrap(), [0_i64; 0]);
    assert_eq!(db.count("SELECT count(*) FROM jobs"), 0);
    let ids = Job::enqueue_all(conn, [echo("one")]).unwrap();
    assert_eq!(ids.len(), 1);
    assert_eq!(
        Job::find(conn, ids[0]).unwrap().args::<Echo>().unwrap(),
        echo("one")
    );
    db.assert_invariants();
}

#[test]
fn a_bulk_gives_the_ids_in_the_order_of_the_input() {
    let db = Db::new();
    let conn = &mut db.connect();
    let ids = Job::enqueue_all(conn, (0..2_500).map(|n| echo(&n.to_string()))).unwrap();
    assert_eq!(ids.iter().collect::<BTreeSet<_>>().len(), 2_500);
    for at in [0, 1, 999, 1_000, 1_001, 2_499] {
        let job = Job::find(conn, ids[at]).unwrap();
        assert_eq!(job.args::<Echo>().unwrap().text, at.to_string());
    }
    db.assert_invariants();
}

#[test]
fn a_bulk_of_10000_has_duplicates_inside_and_outside() {
    let db = Db::new();
    let conn = &mut db.connect();
    let before = Job::enqueue_all(conn, (0..50).map(|n| any().unique(format!("key {n}")))).unwrap();
    // Keys 0 to 99, each one many times, in between 9,000 without a key.
    let jobs = (0..10_000).map(|n| {
        let job = echo(&n.to_string()).job();
        if n % 10 == 0 {
            job.unique(format!("key {}", n / 10 % 100))
        } else {
            job
        }
    });
    let ids = Job::enqueue_all(conn, jobs).unwrap();
    assert_eq!(ids.len(), 10_000);
    for key in 0..100 {
        let of_key: BTreeSet<i64> = (0..10).map(|round| ids[(round * 100 + key) * 10]).collect();
        assert_eq!(of_key.len(), 1, "key {key}");
        if key < 50 {
            assert_eq!(of_key.first(), Some(&before[key]));
        } else {
            let job = Job::find(conn, ids[key * 10]).unwrap();
            assert_eq!(
                job.args::<Echo>().unwrap().text,
                (key * 10).to_string(),
                "the first one wins"
            );
        }
    }
    assert_eq!(db.count("SELECT count(*) FROM jobs"), 50 + 9_000 + 50);
    assert_eq!(db.count("SELECT count(*) FROM unique_keys"), 100);
    db.assert_invariants();
}

#[test]
fn case_34_one_duplicate_does_not_undo_the_bulk_nor_break_the_transaction() {
    use diesel::Connection;
    let db = Db::new();
    let conn = &mut db.connect();
    let held = any().unique("held").enqueue(conn).unwrap().id;
    let ids = conn
        .transaction(|conn| {
            let ids = Job::enqueue_all(conn, [any(), any().unique("held"), any()])?;
            any().enqueue(conn)?;
            diesel::QueryResult::Ok(ids)
        })
        .unwrap();
    assert_eq!(ids[1], held);
    assert_eq!(db.count("SELECT count(*) FROM jobs"), 4);
    db.assert_invariants();
}

#[test]
fn case_35_a_bulk_has_all_that_a_single_enqueue_has() {
    let db = Db::new();
    let conn = &mut db.connect();
    let run_at = "2999-01-01T00:00:00.000001Z".parse().unwrap();
    let past = "1999-01-01T00:00:00Z".parse().unwrap();
    let jobs = || {
        vec![
            any(),
            NewJob::from(Mail { to: 5 }),
            any().queue("q").priority(-9).max_attempts(3),
            any().run_at(run_at),
            any().run_at(past),
            any().run_in(Duration::ZERO),
            any().run_in(Duration::from_secs(3_600)),
            any().unique("u").run_at(run_at),
        ]
    };
    let bulk = Job::enqueue_all(conn, jobs()).unwrap();
    Job::discard(conn, bulk[7]).unwrap();
    for (job, id) in jobs().into_iter().zip(&bulk[..7]) {
        let single = job.enqueue(conn).unwrap();
        let bulk = Job::find(conn, *id).unwrap();
        assert_eq!(shape(&single), shape(&bulk));
    }
    let single = jobs().pop().unwrap().enqueue(conn).unwrap();
    assert_eq!(single.run_at(), Some(run_at));
    assert_eq!(single.unique_key.as_deref(), Some("u"));
    db.assert_invariants();
}

/// What single and bulk must have in common.
fn shape(job: &Job) -> (String, String, i32, i32, serde_json::Value, Status, bool) {
    (
        job.kind.clone(),
        job.queue.clone(),
        job.priority,
        job.max_attempts,
        job.args().unwrap(),
        job.status(),
        job.run_at().is_some(),
    )
}

#[test]
fn a_bulk_with_an_error_writes_nothing() {
    let db = Db::new();
    let conn = &mut db.connect();
    let jobs = (0..1_500).map(|n| {
        if n == 1_400 {
            any().priority(i32::MAX)
        } else {
            any()
        }
    });
    Job::enqueue_all(conn, jobs).unwrap_err();
    assert_eq!(db.count("SELECT count(*) FROM jobs"), 0);
    db.assert_invariants();
}

#[test]
fn a_bulk_of_large_arguments_goes_in_pieces() {
    let db = Db::new();
    let conn = &mut db.connect();
    let text = "🦀".repeat(200_000);
    let ids = Job::enqueue_all(conn, (0..12).map(|_| echo(&text))).unwrap();
    assert_eq!(ids.iter().collect::<BTreeSet<_>>().len(), 12);
    assert_eq!(
        Job::find(conn, ids[11]).unwrap().args::<Echo>().unwrap().text,
        text
    );
    db.assert_invariants();
}
