use super::{any, claim, echo, jobs, register};
use diesel::connection::SimpleConnection;
use job_core::{EnqueueError, Job, JobError, Perform as _, Status};
use job_test::asynchronous::wait;
use job_test::postgres::Db;
use std::time::Duration;

/// What can be told of a job.
fn told(job: &Job) -> String {
    format!("{job:?}")
}

#[test]
fn a_job_that_was_enqueued_is_found_and_is_the_same_as_for_its_twin() {
    let db = Db::new();
    wait(async {
        let conn = &mut db.connect_async().await;
        let jobs = [
            echo().enqueue_async(conn).await.unwrap(),
            any()
                .queue("post")
                .priority(-3)
                .enqueue_async(conn)
                .await
                .unwrap(),
            any()
                .run_in(Duration::from_secs(60))
                .enqueue_async(conn)
                .await
                .unwrap(),
            any()
                .unique("key")
                .max_attempts(2)
                .enqueue_async(conn)
                .await
                .unwrap(),
        ];
        for job in jobs {
            let found = Job::find_async(conn, job.id).await.unwrap();
            assert_eq!(
                (found.id, found.status(), found.unique_key.as_ref()),
                (job.id, job.status(), job.unique_key.as_ref())
            );
            assert_eq!(told(&found), told(&Job::find(&mut db.connect(), job.id).unwrap()));
        }
        let missing = Job::find_async(conn, 404).await;
        assert!(matches!(missing, Err(JobError::NotFound(404))));
    });
    db.assert_invariants();
}

#[test]
fn many_are_enqueued_at_once_in_their_order() {
    let db = Db::new();
    wait(async {
        let conn = &mut db.connect_async().await;
        let first = Job::enqueue_all_async(conn, [any(), any().unique("key"), any()])
            .await
            .unwrap();
        let again = Job::enqueue_all_async(conn, [any().unique("key"), any()])
            .await
            .unwrap();
        assert_eq!(again[0], first[1]);
        assert!(again[1] > first[2]);
        assert_eq!(
            Job::enqueue_all_async(conn, (0..300).map(|_| echo()))
                .await
                .unwrap()
                .len(),
            300
        );
        assert!(
            Job::enqueue_all_async(conn, [(); 0].map(|()| echo()))
                .await
                .unwrap()
                .is_empty()
        );
    });
    assert_eq!(jobs(&db), 304);
    db.assert_invariants();
}

#[test]
fn what_breaks_a_limit_is_refused_before_anything_is_written() {
    let db = Db::new();
    wait(async {
        let conn = &mut db.connect_async().await;
        let refused = any().queue("").enqueue_async(conn).await;
        assert!(matches!(refused, Err(EnqueueError::BadName { .. })));
        let refused = Job::enqueue_all_async(conn, [any(), any().max_attempts(0)]).await;
        assert!(matches!(refused, Err(EnqueueError::BadMaxAttempts(0))));
        let nul = super::Echo { text: "\0".into() }.enqueue_async(conn).await;
        assert!(matches!(nul, Err(EnqueueError::NulInArgs { .. })));
    });
    assert_eq!(jobs(&db), 0);
}

#[test]
fn jobs_are_listed_and_counted() {
    let db = Db::new();
    wait(async {
        let conn = &mut db.connect_async().await;
        let ids = Job::enqueue_all_async(conn, (0..3).map(|_| any().queue("post")))
            .await
            .unwrap();
        let later = any()
            .run_in(Duration::from_secs(60))
            .enqueue_async(conn)
            .await
            .unwrap();

        let page = Job::filter()
            .queue("post")
            .limit(2)
            .load_async(conn)
            .await
            .unwrap();
        assert_eq!(
            page.iter().map(|job| job.id).collect::<Vec<_>>(),
            [ids[2], ids[1]]
        );
        let rest = Job::filter()
            .queue("post")
            .kind("echo")
            .before(ids[1])
            .load_async(conn)
            .await
            .unwrap();
        assert_eq!(rest.iter().map(|job| job.id).collect::<Vec<_>>(), [ids[0]]);
        let scheduled = Job::filter()
            .status(Status::Scheduled)
            .load_async(conn)
            .await
            .unwrap();
        assert_eq!(scheduled[0].id, later.id);

        let counts = Job::counts_async(conn).await.unwrap();
        assert_eq!((counts.of(Status::New), counts.of(Status::Scheduled)), (3, 1));
        assert_eq!(Job::counts_in_async(conn, "post").await.unwrap().total(), 3);
    });
    db.assert_invariants();
}

#[test]
fn the_history_of_a_job_is_told() {
    let db = Db::new();
    let worker_conn = &mut db.connect();
    let worker = register(worker_conn);
    wait(async {
        let conn = &mut db.connect_async().await;
        let id = any().max_attempts(1).enqueue_async(conn).await.unwrap().id;
        claim(worker_conn, &worker).fail(worker_conn, "no luck").unwrap();
        let job = Job::find_async(conn, id).await.unwrap();
        assert_eq!(
            (job.status(), job.last_error()),
            (Status::Failed, Some("no luck"))
        );
        let failures = job.failures_async(conn).await.unwrap();
        assert_eq!(failures, job.failures(&mut db.connect()).unwrap());
        assert_eq!(failures[0].error, "no luck");
    });
}

#[test]
fn the_result_of_a_job_is_read() {
    let db = Db::new();
    let worker_conn = &mut db.connect();
    let worker = register(worker_conn);
    wait(async {
        let conn = &mut db.connect_async().await;
        let id = echo().enqueue_async(conn).await.unwrap().id;
        claim(worker_conn, &worker)
            .complete(worker_conn, &"done")
            .unwrap();
        let job = Job::find_async(conn, id).await.unwrap();
        assert_eq!(job.output::<String>().unwrap(), "done");
    });
}

#[test]
fn a_job_is_cancelled_retried_and_discarded() {
    let db = Db::new();
    let worker_conn = &mut db.connect();
    let worker = register(worker_conn);
    wait(async {
        let conn = &mut db.connect_async().await;
        let id = any().unique("key").enqueue_async(conn).await.unwrap().id;
        assert!(matches!(
            Job::retry_async(conn, id).await,
            Err(JobError::WrongStatus { .. })
        ));
        Job::cancel_async(conn, id, "unwanted").await.unwrap();
        let job = Job::find_async(conn, id).await.unwrap();
        assert_eq!(
            (job.status(), job.last_error()),
            (Status::Cancelled, Some("unwanted"))
        );
        db.assert_invariants();
        assert!(matches!(
            Job::cancel_async(conn, id, "again").await,
            Err(JobError::WrongStatus { .. })
        ));

        let other = any().unique("key").enqueue_async(conn).await.unwrap().id;
        let taken = Job::retry_async(conn, id).await;
        assert!(
            matches!(taken, Err(JobError::KeyTaken { holder, .. }) if holder == other),
            "{taken:?}"
        );
        assert_eq!(
            Job::find_async(conn, id).await.unwrap().status(),
            Status::Cancelled
        );
        Job::discard_async(conn, other).await.unwrap();
        assert!(matches!(
            Job::find_async(conn, other).await,
            Err(JobError::NotFound(_))
        ));
        Job::retry_async(conn, id).await.unwrap();
        assert_eq!(Job::find_async(conn, id).await.unwrap().status(), Status::New);
        db.assert_invariants();

        claim(worker_conn, &worker);
        assert!(matches!(
            Job::discard_async(conn, id).await,
            Err(JobError::WrongStatus { .. })
        ));
        Job::cancel_async(conn, id, "while it is performed")
            .await
            .unwrap();
        assert!(matches!(
            Job::cancel_async(conn, 404, "who?").await,
            Err(JobError::NotFound(404))
        ));
    });
    db.assert_invariants();
}

#[test]
fn workers_are_woken() {
    let db = Db::new();
    let listener = &mut db.connect();
    listener.batch_execute("LISTEN gatun").unwrap();
    wait(async {
        let conn = &mut db.connect_async().await;
        // Of a burst only some are notified, so that there may be need of more than one.
        for keyed in [false, true] {
            loop {
                let job = if keyed {
                    any().unique(format!("key {}", jobs(&db)))
                } else {
                    any()
                };
                job.enqueue_async(conn).await.unwrap();
                if listener.notifications_iter().next().is_some() {
                    break;
                }
            }
        }
        let id = any().enqueue_async(conn).await.unwrap().id;
        while listener.notifications_iter().next().is_some() {}
        loop {
            Job::cancel_async(conn, id, "to be retried").await.unwrap();
            Job::retry_async(conn, id).await.unwrap();
            if listener.notifications_iter().next().is_some() {
                break;
            }
        }
    });
}
