use super::{Conn, Db, only};
use job_core::{ClaimedJob, Job, NewJob, Perform, Run, Status, WorkerRow};
use serde::{Deserialize, Serialize};

/// A job with the defaults.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(in super::super) struct Echo {
    pub(in super::super) text: String,
}

impl Perform for Echo {
    const KIND: &'static str = "echo";
    type Context = ();
    type Output = String;

    fn perform(&self, _: &Run<'_, ()>) -> anyhow::Result<String> {
        Ok(self.text.clone())
    }
}

/// A job with defaults of its own.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(in super::super) struct Mail {
    pub(in super::super) to: i64,
}

impl Perform for Mail {
    const KIND: &'static str = "mail";
    const QUEUE: &'static str = "post";
    const PRIORITY: i32 = 3;
    const MAX_ATTEMPTS: i32 = 2;
    type Context = ();
    type Output = ();

    fn perform(&self, _: &Run<'_, ()>) -> anyhow::Result<()> {
        Ok(())
    }
}

pub(in super::super) fn echo(text: &str) -> Echo {
    Echo {
        text: text.to_owned(),
    }
}

/// Any job, to be given options.
pub(in super::super) fn any() -> NewJob {
    echo("any").job()
}

pub(in super::super) fn strings(names: &[&str]) -> Vec<String> {
    names.iter().map(|&name| name.to_owned()).collect()
}

/// A worker that has every kind of the suite, for the queues that its jobs go to by default.
pub(in super::super) fn register(conn: &mut Conn) -> WorkerRow {
    WorkerRow::register(conn, &strings(&["default", "post"]), &strings(&["echo", "mail"])).unwrap()
}

/// Claims the next job, which must be there.
#[track_caller]
pub(in super::super) fn claim(conn: &mut Conn, worker: &WorkerRow) -> ClaimedJob {
    Job::find_new_job(conn, worker)
        .unwrap()
        .expect("a job that may be claimed")
}

/// Enqueues a job and claims it.
#[track_caller]
pub(in super::super) fn claimed(conn: &mut Conn, worker: &WorkerRow, job: NewJob) -> ClaimedJob {
    let id = job.enqueue(conn).unwrap().id;
    let claimed = claim(conn, worker);
    assert_eq!(claimed.id(), id);
    claimed
}

#[track_caller]
pub(in super::super) fn status(conn: &mut Conn, id: i64) -> Status {
    Job::find(conn, id).unwrap().status()
}

/// Lets all scheduled jobs be due, and promotes them.
#[track_caller]
pub(in super::super) fn promote_all(db: &Db, conn: &mut Conn) -> usize {
    db.execute(&format!("UPDATE jobs_scheduled SET run_at = {}", only::PAST));
    job_core::housekeeping::promote(conn, 1_000_000).unwrap()
}

/// Lets a worker die: its row is gone, its jobs are rescued.
#[track_caller]
pub(in super::super) fn kill(conn: &mut Conn, worker: &WorkerRow) -> Vec<i64> {
    WorkerRow::unregister(conn, worker.id).unwrap();
    job_core::housekeeping::rescue(conn, 1_000_000).unwrap()
}

/// One job in each status, in the order of `Status::ALL`.
pub(in super::super) fn one_in_each_status(conn: &mut Conn) -> [i64; 6] {
    let worker = register(conn);
    let completed = claimed(conn, &worker, any());
    completed.complete(conn, &"done").unwrap();
    let failed = claimed(conn, &worker, any().max_attempts(1));
    failed.fail(conn, "no luck").unwrap();
    let cancelled = any().enqueue(conn).unwrap().id;
    Job::cancel(conn, cancelled, "unwanted").unwrap();
    let processing = claimed(conn, &worker, any()).id();
    let scheduled = any()
        .run_in(std::time::Duration::from_secs(3600))
        .enqueue(conn)
        .unwrap()
        .id;
    let new = any().enqueue(conn).unwrap().id;
    [scheduled, new, processing, completed.id(), failed.id(), cancelled]
}
