use super::Db;
use super::support::{Echo, echo};
use job_core::{Job, Perform, PerformAsync, RunAsync, Status};
use serde::{Deserialize, Serialize};
use std::time::Duration;

#[derive(Serialize, Deserialize)]
struct Fetch {
    page: i64,
}

impl PerformAsync for Fetch {
    const KIND: &'static str = "fetch";
    const QUEUE: &'static str = "web";
    const PRIORITY: i32 = 3;
    const MAX_ATTEMPTS: i32 = 2;
    type Context = ();
    type Output = ();

    async fn perform(&self, _: &RunAsync<()>) -> anyhow::Result<()> {
        Ok(())
    }
}

#[test]
fn an_async_job_is_enqueued_with_the_defaults_of_its_kind_as_any_other() {
    let db = Db::new();
    let job = Fetch { page: 7 }.enqueue(&mut db.connect()).unwrap();
    assert_eq!((job.kind.as_str(), job.queue.as_str()), ("fetch", "web"));
    assert_eq!(
        (job.priority, job.max_attempts, job.status()),
        (3, 2, Status::New)
    );
    assert_eq!(job.args::<Fetch>().unwrap().page, 7);
    db.assert_invariants();
}

#[test]
fn an_async_job_takes_the_options_of_any_other() {
    let db = Db::new();
    let conn = &mut db.connect();
    let options = |page| {
        let job = Fetch { page }.job().queue("night").priority(-1).max_attempts(9);
        job.run_in(Duration::from_secs(600)).unique("page")
    };
    let job = options(1).enqueue(conn).unwrap();
    assert_eq!(
        (job.queue.as_str(), job.priority, job.max_attempts),
        ("night", -1, 9)
    );
    assert_eq!(job.status(), Status::Scheduled);
    assert_eq!(options(2).enqueue(conn).unwrap().id, job.id);
    db.assert_invariants();
}

#[test]
fn jobs_of_both_sorts_are_enqueued_at_once() {
    let db = Db::new();
    let conn = &mut db.connect();
    let fetches = Job::enqueue_all(conn, (0..3).map(|page| Fetch { page })).unwrap();
    let echoes = Job::enqueue_all(conn, [echo("a"), echo("b")]).unwrap();
    let mixed = Job::enqueue_all(conn, [Fetch { page: 9 }.job(), echo("c").job()]).unwrap();
    let kinds = |ids: &[i64]| -> Vec<String> {
        ids.iter()
            .map(|&id| Job::find(&mut db.connect(), id).unwrap().kind)
            .collect()
    };
    assert_eq!(kinds(&fetches), ["fetch"; 3]);
    assert_eq!(kinds(&echoes), [Echo::KIND; 2]);
    assert_eq!(kinds(&mixed), ["fetch", Echo::KIND]);
    db.assert_invariants();
}
