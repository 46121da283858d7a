use super::Db;
use super::support::{any, claimed, register};
use chrono::{DateTime, Utc};
use job_core::{
    ClaimedJob, Job, JobError, Outcome, Status, Ticket, When, cancel, fail_for_good, snooze, snooze_until,
};
use serde_json::value::RawValue;
use std::time::Duration;

/// Error texts that have killed a worker somewhere.
fn texts() -> Vec<String> {
    vec![
        String::new(),
        " \n\t".into(),
        "a\0b\0".into(),
        "\u{1}\u{1f}\u{7f}\u{fffe}\u{ffff}\u{10ffff}".into(),
        "🦀".repeat(100),
        String::from_utf8_lossy(b"caf\xe9 \xff\xfe \xf0\x9f").into_owned(),
        "'; DROP TABLE jobs; -- \\ \" ` % _ ? $1 :x".into(),
        "x".repeat(10 << 20),
        format!("{}🦀", "é".repeat(8 << 10)),
    ]
}

type Record = fn(&mut super::Conn, &ClaimedJob, &str) -> Result<Status, JobError>;

#[test]
fn invariant_8_and_case_26_any_error_text_is_recorded() {
    let db = Db::new();
    let conn = &mut db.connect();
    let worker = register(conn);
    for text in texts() {
        let records: [Record; 4] = [
            |conn, job, text| job.fail(conn, text),
            |conn, job, text| job.ticket.record(conn, &Outcome::FailedForGood(text.into())),
            |conn, job, text| job.ticket.record(conn, &Outcome::Cancelled(text.into())),
            |conn, job, text| Job::cancel(conn, job.id(), text).map(|()| Status::Cancelled),
        ];
        for record in records {
            let job = claimed(conn, &worker, any().max_attempts(1));
            let status = record(conn, &job, &text).unwrap();
            assert!(status.is_finished());
            let found = Job::find(conn, job.id()).unwrap();
            let kept = found.last_error().unwrap();
            assert!(!kept.trim().is_empty() && kept.len() < 20_000);
            let clean = text.replace('\0', "\u{fffd}");
            if !text.trim().is_empty() && text.len() <= 16 << 10 {
                assert_eq!(kept, clean);
            }
        }
    }
    db.assert_invariants();
}

#[test]
fn invariant_8_any_delay_and_any_time_is_recorded() {
    let db = Db::new();
    let conn = &mut db.connect();
    let worker = register(conn);
    let delays = [
        Duration::ZERO,
        Duration::from_nanos(1),
        Duration::from_secs(u64::from(u32::MAX)),
        Duration::from_secs(i64::MAX as u64),
        Duration::MAX,
    ];
    for delay in delays {
        for outcome in [
            Outcome::Failed {
                error: "no".into(),
                delay,
            },
            Outcome::Snoozed(When::In(delay)),
        ] {
            let job = claimed(conn, &worker, any());
            assert_eq!(
                job.ticket.record(conn, &outcome).unwrap(),
                Status::Scheduled,
                "{delay:?}"
            );
            assert!(Job::find(conn, job.id()).unwrap().run_at().is_some());
        }
    }
    let times: [DateTime<Utc>; 6] = [
        DateTime::<Utc>::MIN_UTC,
        DateTime::<Utc>::MAX_UTC,
        "0000-01-01T00:00:00Z".parse().unwrap(),
        "1969-12-31T23:59:59.999999Z".parse().unwrap(),
        "9999-12-31T23:59:59.999999999Z".parse().unwrap(),
        "+10000-01-01T00:00:00Z".parse().unwrap(),
    ];
    for time in times {
        let job = claimed(conn, &worker, any());
        let outcome = Outcome::Snoozed(When::At(time));
        assert_eq!(
            job.ticket.record(conn, &outcome).unwrap(),
            Status::Scheduled,
            "{time}"
        );
    }
    // All that lies in the past is due.
    assert!(job_core::housekeeping::promote(conn, 100).unwrap() >= 3);
    db.assert_invariants();
}

#[test]
fn case_30_a_job_ends_itself_by_its_error() {
    let db = Db::new();
    let conn = &mut db.connect();
    let worker = register(conn);
    let later = "2999-01-01T00:00:00Z".parse().unwrap();
    for (error, status, text) in [
        (
            cancel("the order was deleted"),
            Status::Cancelled,
            Some("the order was deleted"),
        ),
        (
            fail_for_good("no such card"),
            Status::Failed,
            Some("no such card"),
        ),
        (snooze(Duration::from_secs(60)), Status::Scheduled, None),
        (snooze_until(later), Status::Scheduled, None),
        (
            anyhow::anyhow!("cause").context("what failed"),
            Status::Scheduled,
            Some("what failed: cause"),
        ),
    ] {
        // What a job adds to the error on its way does not hide what it asks for.
        let error = if text == Some("no such card") {
            error.context("while paying")
        } else {
            error
        };
        let job = claimed(conn, &worker, any());
        let outcome = Outcome::of_error(&error, Duration::from_secs(1));
        assert_eq!(job.ticket.record(conn, &outcome).unwrap(), status, "{error}");
        let found = Job::find(conn, job.id()).unwrap();
        assert_eq!((found.status(), found.last_error()), (status, text));
    }
    let snoozed = Job::filter().status(Status::Scheduled).load(conn).unwrap();
    assert_eq!(snoozed[1].run_at(), Some(later));
    db.assert_invariants();
}

#[test]
fn case_27_and_invariant_8_a_result_that_cannot_be_kept_ends_the_job_as_failed_with_a_reason() {
    let db = Db::new();
    let conn = &mut db.connect();
    let worker = register(conn);
    let holds_nul = <<super::Conn as job_db::DbConnection>::Db as job_core::Database>::JSON_HOLDS_NUL;
    let job = claimed(conn, &worker, any());
    let status = job.complete(conn, &"a\0b").unwrap();
    let found = Job::find(conn, job.id()).unwrap();
    assert_eq!(found.status(), status);
    if holds_nul {
        assert_eq!(found.output::<String>().unwrap(), "a\0b");
    } else {
        assert_eq!(status, Status::Failed);
        assert!(found.last_error().unwrap().contains("NUL"), "{found:?}");
    }
    let job = claimed(conn, &worker, any());
    assert_eq!(job.complete(conn, &"x".repeat(1 << 20)).unwrap(), Status::Failed);
    assert!(
        Job::find(conn, job.id())
            .unwrap()
            .last_error()
            .unwrap()
            .contains("1048578 bytes of JSON")
    );
    let job = claimed(conn, &worker, any());
    let no_json = std::collections::HashMap::from([((1, 2), 3)]);
    assert_eq!(job.complete(conn, &no_json).unwrap(), Status::Failed);
    assert!(
        Job::find(conn, job.id())
            .unwrap()
            .last_error()
            .unwrap()
            .contains("cannot be written as JSON")
    );
    db.assert_invariants();
}

/// JSON that serde_json writes, but that some database may refuse or that nobody can read again.
fn odd_documents() -> Vec<Box<serde_json::value::RawValue>> {
    let deep = format!("{}{}", "[".repeat(200_000), "]".repeat(200_000));
    [
        "\"\\ud800\"",
        "1e999999",
        "-1e-999999",
        "\"\\udc00\\ud800\"",
        &deep,
        "{\"a\":1,\"a\":2}",
    ]
    .into_iter()
    .map(|json| serde_json::value::RawValue::from_string(json.to_owned()).unwrap_or_else(|_| raw(json)))
    .collect()
}

fn raw(json: &str) -> Box<serde_json::value::RawValue> {
    panic!("{} is no JSON for serde_json", &json[..20])
}

#[test]
fn invariant_8_any_json_that_a_result_may_be_is_recorded_or_ends_the_job() {
    let db = Db::new();
    let conn = &mut db.connect();
    let worker = register(conn);
    for document in odd_documents() {
        let job = claimed(conn, &worker, any());
        let good = claimed(conn, &worker, any());
        let status = job.complete(conn, &document).unwrap();
        let found = Job::find(conn, job.id()).unwrap();
        assert_eq!(found.status(), status);
        if status == Status::Failed {
            assert!(found.last_error().unwrap().contains("result"), "{found:?}");
        }
        // Among others, in a batch.
        let job = claimed(conn, &worker, any());
        let result = Some(job_core::JsonText(document.get().to_owned()));
        let batch = [(good.ticket.clone(), None), (job.ticket.clone(), result)];
        let recorded = job_core::complete_all(conn, worker.id, &batch).unwrap();
        assert_eq!(recorded.len(), 2);
        assert_eq!(Job::find(conn, good.id()).unwrap().status(), Status::Completed);
        assert!(Job::find(conn, job.id()).unwrap().status().is_finished());
    }
    db.assert_invariants();
}

#[test]
fn a_result_with_a_number_that_no_float_holds_fails_for_good() {
    let db = Db::new();
    let conn = &mut db.connect();
    let worker = register(conn);
    for text in ["1e401", "[1e200000]", r#"{"n": -1e-16000}"#] {
        let job = claimed(conn, &worker, any().max_attempts(3));
        let result = RawValue::from_string(text.to_owned()).unwrap();
        assert_eq!(job.complete(conn, &result).unwrap(), Status::Failed);
        let found = Job::find(conn, job.id()).unwrap();
        assert_eq!((found.status(), found.attempts()), (Status::Failed, 1));
        let error = found.last_error().unwrap();
        assert!(error.contains("a number with an exponent above 400"), "{error}");
        db.assert_invariants();
    }
}

#[test]
fn what_the_job_has_recorded_itself_moves_nothing() {
    let db = Db::new();
    let conn = &mut db.connect();
    let worker = register(conn);
    let job = claimed(conn, &worker, any());
    for record in [
        Ticket::record::<super::Conn>,
        Ticket::record_or_fail::<super::Conn>,
    ] {
        assert_eq!(
            record(&job.ticket, conn, &Outcome::Recorded).unwrap(),
            Status::Completed
        );
        db.assert_invariants();
        assert_eq!(Job::find(conn, job.id()).unwrap().status(), Status::Processing);
    }
}
