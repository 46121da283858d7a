use super::Db;
use super::support::{Mail, any, claim, claimed, echo, one_in_each_status, register};
use job_core::{Job, JobError, JobFilter, Perform, Status};

fn ids(filter: JobFilter, conn: &mut super::Conn) -> Vec<i64> {
    filter.load(conn).unwrap().iter().map(|job| job.id).collect()
}

#[test]
fn a_job_that_is_not_there_is_not_found() {
    let db = Db::new();
    let conn = &mut db.connect();
    for id in [0, -1, 1, i64::MAX, i64::MIN] {
        let found = Job::find(conn, id);
        assert!(
            matches!(found, Err(JobError::NotFound(not)) if not == id),
            "{found:?}"
        );
    }
}

#[test]
fn a_job_whose_status_was_deleted_by_hand_is_told_as_such() {
    let db = Db::new();
    let conn = &mut db.connect();
    let id = any().enqueue(conn).unwrap().id;
    db.execute("DELETE FROM jobs_new");
    for result in [
        Job::find(conn, id).map(drop),
        Job::cancel(conn, id, "why"),
        Job::filter().load(conn).map(drop),
    ] {
        assert!(
            matches!(result, Err(JobError::NoStatus(of)) if of == id),
            "{result:?}"
        );
    }
}

#[test]
fn filters_narrow_by_status_queue_and_kind() {
    let db = Db::new();
    let conn = &mut db.connect();
    let each = one_in_each_status(conn);
    for (id, status) in each.into_iter().zip(Status::ALL) {
        assert_eq!(ids(Job::filter().status(status), conn), [id], "{status}");
        assert_eq!(
            Job::filter().status(status).load(conn).unwrap()[0].status(),
            status
        );
        assert!(ids(Job::filter().status(status).kind("mail"), conn).is_empty());
        assert_eq!(ids(Job::filter().status(status).queue("default"), conn), [id]);
    }
    let mail = Mail { to: 1 }.enqueue(conn).unwrap().id;
    assert_eq!(ids(Job::filter().kind("mail"), conn), [mail]);
    assert_eq!(
        ids(Job::filter().queue("post").kind("mail").status(Status::New), conn),
        [mail]
    );
    assert!(ids(Job::filter().queue("post").kind("echo"), conn).is_empty());
    assert_eq!(ids(Job::filter(), conn).len(), 7);
    assert!(ids(Job::filter().limit(0), conn).is_empty());
    db.assert_invariants();
}

#[test]
fn case_52_pages_skip_nothing_and_show_nothing_twice() {
    let db = Db::new();
    let conn = &mut db.connect();
    // All in one statement, so that they share their time.
    let mut all = Job::enqueue_all(conn, (0..25).map(|n| echo(&n.to_string()))).unwrap();
    all.reverse();
    let mut seen = Vec::new();
    let mut filter = Job::filter().status(Status::New).limit(4);
    loop {
        let page = ids(filter.clone(), conn);
        let Some(&last) = page.last() else { break };
        seen.extend(page);
        filter = filter.before(last);
        // What comes in between does not shift the pages.
        any().enqueue(conn).unwrap();
    }
    assert_eq!(seen, all);
    db.assert_invariants();
}

#[test]
fn counts_are_by_status_and_queue() {
    let db = Db::new();
    let conn = &mut db.connect();
    assert_eq!(Job::counts(conn).unwrap().total(), 0);
    one_in_each_status(conn);
    Mail { to: 1 }.enqueue(conn).unwrap();
    let counts = Job::counts(conn).unwrap();
    let default = Job::counts_in(conn, "default").unwrap();
    for status in Status::ALL {
        assert_eq!(default.of(status), 1, "{status}");
        assert_eq!(
            counts.of(status),
            if status == Status::New { 2 } else { 1 },
            "{status}"
        );
    }
    assert_eq!((counts.total(), counts.unfinished()), (7, 4));
    assert_eq!(Job::counts_in(conn, "post").unwrap().total(), 1);
    assert_eq!(Job::counts_in(conn, "nowhere").unwrap().total(), 0);
    db.assert_invariants();
}

#[test]
fn the_output_is_typed() {
    let db = Db::new();
    let conn = &mut db.connect();
    let worker = register(conn);
    let job = claimed(conn, &worker, any());
    let early = Job::find(conn, job.id()).unwrap().output::<String>();
    assert!(
        matches!(
            early,
            Err(JobError::NoOutput {
                status: Status::Processing,
                ..
            })
        ),
        "{early:?}"
    );
    job.complete(conn, &("text 🦀", 7, Some(1.5))).unwrap();
    let job = Job::find(conn, job.id()).unwrap();
    assert_eq!(
        job.output::<(String, i32, Option<f64>)>().unwrap(),
        ("text 🦀".into(), 7, Some(1.5))
    );
    let mistyped = job.output::<Vec<i32>>();
    assert!(
        matches!(mistyped, Err(JobError::Decode { what: "result", .. })),
        "{mistyped:?}"
    );
    let mistyped = job.args::<Vec<i32>>();
    assert!(
        matches!(
            mistyped,
            Err(JobError::Decode {
                what: "arguments",
                ..
            })
        ),
        "{mistyped:?}"
    );
    db.assert_invariants();
}

#[test]
fn no_output_is_an_output() {
    let db = Db::new();
    let conn = &mut db.connect();
    let worker = register(conn);
    claimed(conn, &worker, any()).complete(conn, &()).unwrap();
    let job = &Job::filter().load(conn).unwrap()[0];
    job.output::<()>().unwrap();
    assert_eq!(job.output::<Option<i32>>().unwrap(), None);
    assert!(job.output::<i32>().is_err());
    assert_eq!(
        db.count("SELECT count(*) FROM jobs_finished WHERE result IS NULL"),
        1
    );
    let failed = claimed(conn, &worker, any().max_attempts(1));
    failed.fail(conn, "no").unwrap();
    let output = Job::find(conn, failed.id()).unwrap().output::<()>();
    assert!(
        matches!(
            output,
            Err(JobError::NoOutput {
                status: Status::Failed,
                ..
            })
        ),
        "{output:?}"
    );
    db.assert_invariants();
}

#[test]
fn the_history_of_failures_is_in_the_order_of_the_attempts() {
    let db = Db::new();
    let conn = &mut db.connect();
    let worker = register(conn);
    let id = any().max_attempts(12).enqueue(conn).unwrap().id;
    let mut times = vec![job_core::now(conn).unwrap() - chrono::TimeDelta::milliseconds(1)];
    for attempt in 1..=11 {
        claim(conn, &worker)
            .fail(conn, &format!("error {attempt}"))
            .unwrap();
        let job = Job::find(conn, id).unwrap();
        assert_eq!(job.last_error(), Some(format!("error {attempt}").as_str()));
        super::support::promote_all(&db, conn);
    }
    let failures = Job::find(conn, id).unwrap().failures(conn).unwrap();
    assert_eq!(failures.len(), 11);
    for (failure, attempt) in failures.iter().zip(1..) {
        assert_eq!(
            (failure.attempt, &failure.error),
            (attempt, &format!("error {attempt}"))
        );
        assert!(failure.failed_at >= *times.last().unwrap());
        times.push(failure.failed_at);
    }
    db.assert_invariants();
}

#[test]
fn the_view_shows_each_job_with_its_status() {
    let db = Db::new();
    let conn = &mut db.connect();
    let each = one_in_each_status(conn);
    for (id, status) in each.into_iter().zip(Status::ALL) {
        let shown = db.text(&format!("SELECT status FROM jobs_with_status WHERE id = {id}"));
        assert_eq!(shown.as_deref(), Some(status.name()));
        let attempts = i64::from(Job::find(conn, id).unwrap().attempts());
        assert_eq!(
            db.count(&format!(
                "SELECT count(*) FROM jobs_with_status WHERE id = {id} AND attempts = {attempts}"
            )),
            1
        );
    }
    assert_eq!(
        db.count("SELECT count(*) FROM jobs_with_status WHERE kind = 'echo' AND queue = 'default'"),
        6
    );
    assert_eq!(
        db.count("SELECT count(*) FROM jobs_with_status WHERE error = 'no luck'"),
        1
    );
    db.assert_invariants();
}
