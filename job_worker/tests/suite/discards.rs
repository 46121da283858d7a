use super::{Conn, Db};
use anyhow::bail;
use diesel::connection::SimpleConnection;
use job_core::{Job, Perform, Run, Status};
use job_worker::Worker;
use serde::{Deserialize, Serialize};
use std::time::Duration;

/// A job that nobody asks about when it has completed.
#[derive(Debug, Serialize, Deserialize)]
enum Mail {
    Sent,
    SentAtLast,
    Booked,
    Refused,
}

impl Perform for Mail {
    const KIND: &'static str = "mail";
    const MAX_ATTEMPTS: i32 = 2;
    const DISCARD_COMPLETED: bool = true;
    type Context = ();
    type Output = String;

    fn perform(&self, run: &Run<'_, ()>) -> anyhow::Result<String> {
        match self {
            Mail::Sent => Ok("sent".into()),
            Mail::SentAtLast if run.attempt() == 2 => Ok("sent".into()),
            Mail::Booked => run.transaction(|conn: &mut Conn| {
                conn.batch_execute("INSERT INTO effects (job_id) VALUES (1)")?;
                Ok("booked".into())
            }),
            _ => bail!("refused"),
        }
    }

    fn retry_delay(_attempt: i32) -> Duration {
        Duration::ZERO
    }
}

#[test]
fn completed_jobs_of_a_kind_that_says_so_are_gone_and_failed_ones_stay() {
    let db = Db::new();
    db.execute("CREATE TABLE effects (job_id BIGINT NOT NULL)");
    let conn = &mut db.connect();
    let mails = [Mail::Sent, Mail::SentAtLast, Mail::Booked, Mail::Refused];
    let jobs = mails.iter().map(|mail| mail.job().unique(format!("{mail:?}")));
    let ids = Job::enqueue_all(conn, jobs).unwrap();
    let report = Worker::new(db.manager(), ())
        .register::<Mail>()
        .threads(2)
        .poll(Duration::from_millis(20))
        .run_until_idle()
        .unwrap();
    assert_eq!((report.completed, report.failed), (3, 1), "{report}");
    assert_eq!(Job::find(conn, ids[3]).unwrap().status(), Status::Failed);
    assert_eq!(db.count("SELECT count(*) FROM jobs"), 1);
    assert_eq!(
        db.count("SELECT count(*) FROM job_failures"),
        2,
        "those of the one that failed"
    );
    assert_eq!(db.count("SELECT count(*) FROM unique_keys"), 0);
    assert_eq!(db.count("SELECT count(*) FROM effects"), 1);
    db.assert_invariants();
}

#[cfg(feature = "tokio")]
mod of_async_jobs {
    use super::*;
    use job_core::{PerformAsync, RunAsync};

    #[derive(Debug, Serialize, Deserialize)]
    struct Post {
        books: bool,
    }

    impl PerformAsync for Post {
        const KIND: &'static str = "post";
        const DISCARD_COMPLETED: bool = true;
        type Context = ();
        type Output = ();

        async fn perform(&self, run: &RunAsync<()>) -> anyhow::Result<()> {
            if self.books {
                run.transaction(|conn: &mut Conn| {
                    Ok(conn.batch_execute("INSERT INTO effects (job_id) VALUES (1)")?)
                })
                .await?;
            }
            Ok(())
        }
    }

    #[test]
    fn completed_async_jobs_of_a_kind_that_says_so_are_gone() {
        let db = Db::new();
        db.execute("CREATE TABLE effects (job_id BIGINT NOT NULL)");
        Job::enqueue_all(&mut db.connect(), [true, false].map(|books| Post { books })).unwrap();
        let report = Worker::new(db.manager(), ())
            .register_async::<Post>()
            .poll(Duration::from_millis(20))
            .run_until_idle()
            .unwrap();
        assert_eq!(report.completed, 2, "{report}");
        assert_eq!(db.count("SELECT count(*) FROM jobs"), 0);
        assert_eq!(db.count("SELECT count(*) FROM effects"), 1);
        db.assert_invariants();
    }
}
