use super::support::{any, claim, promote_all, register};
use super::{Conn, Db, only};
use chrono::{DateTime, TimeDelta, Utc};
use diesel::connection::SimpleConnection;
use job_core::{Job, Outcome, When, WorkerRow, housekeeping, now};
use std::time::Duration;

/// The times of a job and a worker that live on this connection, each with the bounds that the database's clock set.
fn times(db: &Db, conn: &mut Conn) -> Vec<(&'static str, DateTime<Utc>)> {
    let run_at = "2999-07-01T12:00:00.654321Z".parse().unwrap();
    let worker = register(conn);
    let id = any().run_at(run_at).enqueue(conn).unwrap().id;
    // Read by a session that has no zone of its own.
    let read = |id| Job::find(&mut db.connect(), id).unwrap();
    assert_eq!(read(id).run_at(), Some(run_at));
    promote_all(db, conn);
    let job = claim(conn, &worker);
    let mut times = vec![
        ("created_at", read(id).created_at),
        ("started_at", read(id).started_at().unwrap()),
        ("ticket.started_at", job.ticket.started_at),
        ("beat_at", WorkerRow::list(&mut db.connect()).unwrap()[0].beat_at),
    ];
    job.ticket
        .record(conn, &Outcome::Snoozed(When::At(run_at)))
        .unwrap();
    assert_eq!(read(id).run_at(), Some(run_at));
    promote_all(db, conn);
    let job = claim(conn, &worker);
    job.ticket
        .record(
            conn,
            &Outcome::Failed {
                error: "no".into(),
                delay: Duration::ZERO,
            },
        )
        .unwrap();
    times.push(("retry", read(id).run_at().unwrap()));
    times.push(("failed_at", read(id).failures(conn).unwrap()[0].failed_at));
    promote_all(db, conn);
    let job = claim(conn, &worker);
    job_core::complete_all(conn, worker.id, &[(job.ticket.clone(), None)]).unwrap();
    times.push(("finished_at", read(id).finished_at().unwrap()));
    assert_eq!(
        read(id).started_at(),
        Some(job.ticket.started_at),
        "kept to the microsecond"
    );
    WorkerRow::unregister(conn, worker.id).unwrap();
    times
}

#[test]
fn invariant_7_and_case_43_times_are_the_databases_and_no_time_zone_shifts_them() {
    for zone in only::TIME_ZONES {
        let db = Db::new();
        let conn = &mut db.connect();
        conn.batch_execute(zone).unwrap();
        let before = now(conn).unwrap() - TimeDelta::milliseconds(1);
        let times = times(&db, conn);
        let after = now(&mut db.connect()).unwrap() + TimeDelta::milliseconds(1);
        for (name, time) in times {
            assert!(before <= time && time <= after, "{zone}: {name} is {time}");
        }
        db.assert_invariants();
    }
}

#[test]
fn case_43_a_time_in_the_hour_that_summer_time_skips_or_repeats_is_kept() {
    for zone in only::TIME_ZONES {
        let db = Db::new();
        let conn = &mut db.connect();
        conn.batch_execute(zone).unwrap();
        for time in [
            "2998-03-31T01:30:00Z",
            "2998-10-27T00:30:00Z",
            "2998-10-27T01:30:00Z",
            "2100-01-19T03:14:08Z",
        ] {
            let time = time.parse().unwrap();
            let job = any().run_at(time).enqueue(conn).unwrap();
            assert_eq!(job.run_at(), Some(time));
            assert_eq!(Job::find(&mut db.connect(), job.id).unwrap().run_at(), Some(time));
        }
        assert_eq!(housekeeping::promote(conn, 10).unwrap(), 0);
        db.assert_invariants();
    }
}

#[test]
fn case_44_what_is_due_is_decided_by_the_databases_clock() {
    let db = Db::new();
    let conn = &mut db.connect();
    // One second before and one hour behind the database's time, whatever this process thinks.
    let time = now(conn).unwrap();
    let due = any().run_at(time - TimeDelta::seconds(1)).enqueue(conn).unwrap();
    let later = any().run_at(time + TimeDelta::hours(1)).enqueue(conn).unwrap();
    assert_eq!(due.status(), job_core::Status::New);
    assert_eq!(later.status(), job_core::Status::Scheduled);
    let wait = housekeeping::next_due(conn).unwrap().unwrap();
    assert!(wait <= Duration::from_secs(3_600));
    db.assert_invariants();
}

#[test]
fn the_clock_goes_on_in_a_long_transaction() {
    use diesel::Connection;
    let db = Db::new();
    let conn = &mut db.connect();
    conn.transaction(|conn| {
        let first = any().enqueue(conn)?;
        let mut time = now(conn)?;
        while time - first.created_at < TimeDelta::milliseconds(3) {
            time = now(conn)?;
        }
        let second = any().enqueue(conn)?;
        assert!(second.created_at > first.created_at);
        Ok::<_, diesel::result::Error>(())
    })
    .unwrap();
    db.assert_invariants();
}
