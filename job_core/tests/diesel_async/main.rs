//! The verbs on connections of diesel_async, on PostgreSQL.

mod dropped; // futures that are dropped midway
mod pools; // deadpool and bb8
mod transactions; // in the caller's transaction, and in one of ours
mod unique; // unique keys
mod verbs; // each verb does what its twin does

use job_core::{ClaimedJob, Job, NewJob, Perform, Run, WorkerRow};
use job_test::postgres::{Conn, Db};

#[derive(serde::Serialize, serde::Deserialize)]
struct Echo {
    text: String,
}

impl Perform for Echo {
    const KIND: &'static str = "echo";
    type Context = ();
    type Output = String;

    fn perform(&self, _: &Run<'_, ()>) -> anyhow::Result<String> {
        Ok(self.text.clone())
    }
}

fn echo() -> Echo {
    Echo { text: "any".into() }
}

/// Any job, to be given options.
fn any() -> NewJob {
    echo().job()
}

/// A worker for these jobs, on a connection that blocks, as all workers' are.
fn register(conn: &mut Conn) -> WorkerRow {
    WorkerRow::register(conn, &["default".into()], &["echo".into()]).unwrap()
}

/// Claims the next job, which must be there.
#[track_caller]
fn claim(conn: &mut Conn, worker: &WorkerRow) -> ClaimedJob {
    Job::find_new_job(conn, worker).unwrap().expect("a job")
}

/// What others see.
fn jobs(db: &Db) -> i64 {
    db.count("SELECT count(*) FROM jobs")
}
