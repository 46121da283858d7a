use super::support::{any, claimed, kill, one_in_each_status, register, status};
use super::{Db, only};
use diesel::connection::SimpleConnection;
use job_core::housekeeping::{
    Chores, chores, declare_dead, next_due, promote, prune, rescue, silent_workers,
};
use job_core::{Job, Status, WorkerRow};
use std::time::Duration;

const HOUR: Duration = Duration::from_secs(3_600);

#[test]
fn what_is_due_is_promoted_the_earliest_first() {
    let db = Db::new();
    let conn = &mut db.connect();
    assert_eq!(next_due(conn).unwrap(), None);
    assert_eq!(promote(conn, 10).unwrap(), 0);
    let ids = Job::enqueue_all(conn, (1..=5).map(|n| any().run_in(HOUR * n))).unwrap();
    let wait = next_due(conn).unwrap().unwrap();
    assert!(wait <= HOUR && wait > HOUR / 2, "{wait:?}");
    assert_eq!(promote(conn, 10).unwrap(), 0);
    // All but the first are due, at the same time.
    db.execute(&format!(
        "UPDATE jobs_scheduled SET run_at = {} WHERE job_id > {}",
        only::PAST,
        ids[0]
    ));
    assert_eq!(next_due(conn).unwrap(), Some(Duration::ZERO));
    assert_eq!(promote(conn, 0).unwrap(), 0);
    assert_eq!(promote(conn, 3).unwrap(), 3);
    assert_eq!(status(conn, ids[4]), Status::Scheduled);
    assert_eq!(promote(conn, 3).unwrap(), 1);
    assert_eq!(status(conn, ids[0]), Status::Scheduled);
    for id in &ids[1..] {
        assert_eq!(status(conn, *id), Status::New);
    }
    db.assert_invariants();
}

#[test]
fn one_look_tells_all_that_there_is_to_do() {
    let db = Db::new();
    let conn = &mut db.connect();
    let nothing = Chores {
        next_due: None,
        silent: false,
        orphans: false,
    };
    assert_eq!(chores(conn, HOUR).unwrap(), nothing);
    let worker = register(conn);
    claimed(conn, &worker, any());
    assert_eq!(chores(conn, HOUR).unwrap(), nothing);
    any().run_in(HOUR).enqueue(conn).unwrap();
    let wait = chores(conn, HOUR).unwrap().next_due.unwrap();
    assert!(wait <= HOUR && wait > HOUR / 2, "{wait:?}");
    db.execute(&format!("UPDATE jobs_scheduled SET run_at = {}", only::PAST));
    db.execute(&format!("UPDATE workers SET beat_at = {}", only::PAST));
    let mut there_is = Chores {
        next_due: Some(Duration::ZERO),
        silent: true,
        orphans: false,
    };
    assert_eq!(chores(conn, HOUR).unwrap(), there_is);
    assert!(declare_dead(conn, worker.id, HOUR).unwrap());
    (there_is.silent, there_is.orphans) = (false, true);
    assert_eq!(chores(conn, HOUR).unwrap(), there_is);
    assert_eq!(rescue(conn, 10).unwrap().len(), 1);
    promote(conn, 10).unwrap();
    assert!(!chores(conn, HOUR).unwrap().orphans);
    db.assert_invariants();
}

#[test]
fn many_that_promote_at_once_move_each_job_once() {
    let db = Db::new();
    Job::enqueue_all(&mut db.connect(), (0..500).map(|_| any().run_in(HOUR))).unwrap();
    db.execute(&format!("UPDATE jobs_scheduled SET run_at = {}", only::PAST));
    let moved: usize = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..4)
            .map(|_| {
                scope.spawn(|| {
                    let conn = &mut db.connect();
                    let mut moved = 0;
                    while db.count("SELECT count(*) FROM jobs_scheduled") > 0 {
                        moved += promote(conn, 20).unwrap();
                    }
                    moved
                })
            })
            .collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).sum()
    });
    assert_eq!(moved, 500);
    db.assert_invariants();
}

#[test]
fn only_the_jobs_of_workers_without_a_row_are_rescued() {
    let db = Db::new();
    let conn = &mut db.connect();
    let (dead, alive) = (register(conn), register(conn));
    let lost = claimed(conn, &dead, any().max_attempts(1).unique("key"));
    let lost_too = claimed(conn, &dead, any());
    let kept = claimed(conn, &alive, any());
    assert_eq!(rescue(conn, 10).unwrap(), [0_i64; 0]);
    // However old it is.
    db.execute(&format!("UPDATE jobs_processing SET started_at = {}", only::PAST));
    assert_eq!(rescue(conn, 10).unwrap(), [0_i64; 0]);
    WorkerRow::unregister(conn, dead.id).unwrap();
    assert_eq!(rescue(conn, 0).unwrap(), [0_i64; 0]);
    assert_eq!(rescue(conn, 1).unwrap(), [lost.id()]);
    assert_eq!(rescue(conn, 10).unwrap(), [lost_too.id()]);
    assert_eq!(status(conn, lost.id()), Status::Failed);
    assert_eq!(status(conn, lost_too.id()), Status::Scheduled);
    assert_eq!(status(conn, kept.id()), Status::Processing);
    let job = Job::find(conn, lost_too.id()).unwrap();
    assert!(
        job.last_error().unwrap().contains(&dead.id.to_string()),
        "{job:?}"
    );
    assert_eq!(db.count("SELECT count(*) FROM unique_keys"), 0);
    db.assert_invariants();
}

#[test]
fn two_that_rescue_at_once_do_not_charge_twice() {
    let db = Db::new();
    let conn = &mut db.connect();
    let dead = register(conn);
    Job::enqueue_all(conn, (0..100).map(|_| any())).unwrap();
    while Job::find_new_job(conn, &dead).unwrap().is_some() {}
    WorkerRow::unregister(conn, dead.id).unwrap();
    let start = std::sync::Barrier::new(3);
    let rescued: usize = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..3)
            .map(|_| {
                scope.spawn(|| {
                    let conn = &mut db.connect();
                    start.wait();
                    (0..5).map(|_| rescue(conn, 40).unwrap().len()).sum::<usize>()
                })
            })
            .collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).sum()
    });
    assert_eq!(rescued, 100);
    assert_eq!(db.count("SELECT count(*) FROM job_failures"), 100);
    assert_eq!(
        db.count("SELECT count(*) FROM jobs_scheduled WHERE attempts = 1"),
        100
    );
    db.assert_invariants();
}

#[test]
fn case_11_a_worker_is_silent_when_it_has_not_beaten_for_the_age() {
    let db = Db::new();
    let conn = &mut db.connect();
    let (silent, beating) = (register(conn), register(conn));
    assert_eq!(silent_workers(conn, HOUR).unwrap(), [0_i64; 0]);
    db.execute(&format!(
        "UPDATE workers SET beat_at = {}, started_at = {}",
        only::PAST,
        only::PAST
    ));
    assert!(WorkerRow::beat(conn, beating.id).unwrap());
    assert_eq!(silent_workers(conn, HOUR).unwrap(), [silent.id]);
    assert_eq!(silent_workers(conn, Duration::MAX).unwrap(), [0_i64; 0]);
    assert!(!declare_dead(conn, silent.id, Duration::MAX).unwrap());
    assert!(!declare_dead(conn, beating.id, HOUR).unwrap());
    assert!(declare_dead(conn, silent.id, HOUR).unwrap());
    assert!(!declare_dead(conn, silent.id, HOUR).unwrap());
    assert!(!WorkerRow::beat(conn, silent.id).unwrap());
    db.assert_invariants();
}

#[test]
fn case_21_a_worker_that_beats_in_time_is_not_declared_dead_after_all() {
    let db = Db::new();
    let conn = &mut db.connect();
    let worker = register(conn);
    let job = claimed(conn, &worker, any());
    db.execute(&format!("UPDATE workers SET beat_at = {}", only::PAST));
    let seen = silent_workers(conn, HOUR).unwrap();
    WorkerRow::beat(conn, worker.id).unwrap();
    for id in seen {
        assert!(!declare_dead(conn, id, HOUR).unwrap());
    }
    assert_eq!(rescue(conn, 10).unwrap(), [0_i64; 0]);
    job.complete(conn, &()).unwrap();
    db.assert_invariants();
}

#[test]
fn case_51_old_jobs_are_pruned_in_batches_with_their_history() {
    let db = Db::new();
    let conn = &mut db.connect();
    let worker = register(conn);
    for _ in 0..7 {
        claimed(conn, &worker, any().max_attempts(1))
            .fail(conn, "no")
            .unwrap();
    }
    db.execute(&format!("UPDATE jobs_finished SET finished_at = {}", only::PAST));
    let young = claimed(conn, &worker, any().max_attempts(1));
    young.fail(conn, "no").unwrap();
    let others = one_in_each_status(conn);
    let (mut after, mut removed, mut calls) = (0, Vec::new(), 0);
    loop {
        let pruned = prune(conn, Status::Failed, HOUR, after, 3).unwrap();
        removed.push(pruned.removed);
        calls += 1;
        db.assert_invariants();
        match pruned.next {
            Some(next) => after = next,
            None => break,
        }
    }
    assert_eq!((removed.iter().sum::<usize>(), removed[0], calls), (7, 3, 4));
    assert_eq!(status(conn, young.id()), Status::Failed);
    assert_eq!(db.count("SELECT count(*) FROM job_failures"), 2);
    assert_eq!(db.count("SELECT count(*) FROM jobs"), 7);
    assert_eq!(
        prune(conn, Status::Completed, Duration::MAX, 0, 10)
            .unwrap()
            .removed,
        0
    );
    for (id, expected) in others.into_iter().zip(Status::ALL) {
        assert_eq!(status(conn, id), expected);
    }
}

#[test]
fn only_what_has_ended_is_pruned() {
    let db = Db::new();
    let conn = &mut db.connect();
    one_in_each_status(conn);
    db.execute(&format!("UPDATE jobs_finished SET finished_at = {}", only::PAST));
    for status in Status::ALL {
        let pruned = prune(conn, status, Duration::ZERO, 0, 10).unwrap();
        assert_eq!(pruned.removed, usize::from(status.is_finished()), "{status}");
    }
    assert_eq!(Job::counts(conn).unwrap().total(), 3);
    let worker = register(conn);
    assert_eq!(kill(conn, &worker), [0_i64; 0]);
    db.assert_invariants();
}

#[test]
fn case_53_what_is_due_later_lies_in_no_claims_way() {
    let db = Db::new();
    let conn = &mut db.connect();
    Job::enqueue_all(conn, (0..3_000).map(|_| any().run_in(HOUR))).unwrap();
    assert_eq!(db.count("SELECT count(*) FROM jobs_new"), 0);
    assert_eq!(
        job_core::lanes(conn, &super::support::strings(&["default"])).unwrap(),
        []
    );
    let worker = register(conn);
    claimed(conn, &worker, any());
    db.assert_invariants();
}

#[test]
fn a_foreign_key_of_the_apps_keeps_only_its_own_job() {
    let db = Db::new();
    db.execute(
        "CREATE TABLE orders (id BIGINT PRIMARY KEY, job_id BIGINT, FOREIGN KEY (job_id) REFERENCES jobs (id))",
    );
    let conn = &mut db.connect();
    conn.batch_execute(only::ENFORCE_FOREIGN_KEYS).unwrap();
    let worker = register(conn);
    let ids: Vec<i64> = (0..20)
        .map(|_| {
            let job = claimed(conn, &worker, any());
            job.complete(conn, &"done").unwrap();
            job.id()
        })
        .collect();
    db.execute(&format!("INSERT INTO orders VALUES (1, {})", ids[3]));
    db.execute(&format!("UPDATE jobs_finished SET finished_at = {}", only::PAST));
    assert_eq!(prune(conn, Status::Completed, HOUR, 0, 100).unwrap().removed, 19);
    assert_eq!(db.bigints("SELECT id FROM jobs"), [ids[3]]);
    db.assert_invariants();
    // Once the app has let it go, it goes too.
    db.execute("DELETE FROM orders");
    assert_eq!(prune(conn, Status::Completed, HOUR, 0, 100).unwrap().removed, 1);
    assert_eq!(Job::counts(conn).unwrap().total(), 0);
    db.assert_invariants();
}
