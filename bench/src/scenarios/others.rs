//! The drain on the other databases, for which there are no peers.

use crate::clock;
use crate::contenders::{field, gatun};
use crate::run::Bench;
use anyhow::{Result, ensure};
use job_core::JobConnection;
use job_test::{Kind, TestDb};

const NAME: &str = "others";

pub fn measure(bench: &mut Bench) -> Result<()> {
    #[cfg(feature = "sqlite")]
    {
        let db = TestDb::<job_test::Sqlite>::empty();
        let url = format!("sqlite:{}", db.url());
        one(bench, &db, &url, "SQLite")?;
    }
    #[cfg(feature = "mysql")]
    {
        let server = job_test::server::MariadbServer::start();
        let db = TestDb::<job_test::Mysql>::new_on(&server.url());
        let url = db.url().to_owned();
        one(bench, &db, &url, "MariaDB")?;
    }
    Ok(())
}

fn one<K>(bench: &mut Bench, db: &TestDb<K>, url: &str, name: &str) -> Result<()>
where
    K: Kind<Conn: JobConnection>,
{
    let jobs = bench.options.size(50_000, 1_000);
    gatun().call(url, &["setup"])?;
    let began = clock::now();
    gatun().call(url, &["enqueue", &jobs.to_string()])?;
    bench.note(
        NAME,
        name,
        "bulk 10000 jobs/s",
        jobs as f64 / clock::seconds(began, clock::now()),
    );
    let answer = gatun().call(url, &["drain", &jobs.to_string()])?;
    let done = completed(&mut db.connect())?;
    ensure!(done == jobs as i64, "{name}: {done} of {jobs} jobs are completed");
    bench.note(NAME, name, "jobs/s", jobs as f64 / field(&answer, "seconds")?);
    bench.note(
        NAME,
        name,
        "worker µs/job",
        field(&answer, "cpu_us")? / jobs as f64,
    );
    Ok(())
}

/// How many jobs are completed, since the driver does not read the tables of these databases itself.
fn completed<C: job_core::JobConnection>(conn: &mut C) -> Result<i64> {
    Ok(job_core::Job::counts(conn)?.of(job_core::Status::Completed))
}
