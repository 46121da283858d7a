//! Thousands of async jobs at once over a handful of connections.

use super::suite::scene::{call, caller_at};
use super::{Conn, Db};
use diesel::r2d2::ConnectionManager;
use job_core::{Job, Status};
use serde_json::json;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

#[test]
fn five_thousand_async_jobs_wait_beside_each_other_over_ten_connections() {
    const JOBS: usize = 5_000;
    let db = Db::new();
    let conn = &mut db.connect();
    Job::enqueue_all(conn, (0..JOBS).map(|number| call(number.to_string()))).unwrap();
    // By which the server knows the worker's connections.
    let name = format!("crowd_{}", std::process::id());
    let manager = ConnectionManager::<Conn>::new(format!("{}&application_name={name}", db.url()));
    let (now, most) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
    let greatest = Arc::clone(&most);
    let worker = caller_at(manager, move |number, run| {
        let (now, most) = (Arc::clone(&now), Arc::clone(&greatest));
        async move {
            most.fetch_max(now.fetch_add(1, Ordering::SeqCst) + 1, Ordering::SeqCst);
            // Until thousands are here at once.
            while most.load(Ordering::SeqCst) < 4_000 {
                tokio::time::sleep(Duration::from_millis(50)).await;
            }
            now.fetch_sub(1, Ordering::SeqCst);
            // Some of them want a connection, all at the same time.
            if number.ends_with('7') {
                run.transaction(|_: &mut Conn| Ok(json!(null))).await?;
            }
            Ok(json!(null))
        }
    })
    .async_jobs(JOBS);
    let handle = worker.handle();
    let thread = std::thread::spawn(move || worker.run());
    let count = format!("SELECT count(*) FROM pg_stat_activity WHERE application_name = '{name}'");
    let mut connections = 0;
    job_test::eventually("all are completed", || {
        assert!(!thread.is_finished());
        connections = connections.max(db.count(&count));
        Job::counts(conn).unwrap().of(Status::Completed) == JOBS as i64
    });
    handle.stop();
    let report = thread.join().unwrap().unwrap();
    assert_eq!((report.completed, report.retried), (JOBS as u64, 0));
    assert!((1..=10).contains(&connections), "{connections} connections");
    assert!(most.load(Ordering::SeqCst) >= 4_000);
    db.assert_invariants();
}
