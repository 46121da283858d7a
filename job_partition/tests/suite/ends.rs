//! Closures whose transaction is over before they are.

use super::items::{Item, has, insert, items, mark, partition, pending};
use super::{Conn, IMPLICIT_COMMIT, SWALLOWED_ROLLBACK};
use diesel::connection::{Connection, SimpleConnection, TransactionManager};
use job_partition::{Key, KeyValue, Outcome, Report};

fn failed(report: &Report) -> Vec<i64> {
    let keys = report.failures.iter().map(|row| match row.key {
        KeyValue::Integer(id) => id,
        _ => panic!("{report}"),
    });
    keys.collect()
}

#[track_caller]
fn assert_all_failed(report: &Report, count: usize) {
    assert_eq!(
        report.outcome,
        Outcome::Incomplete {
            busy: 0,
            failed: count
        },
        "{report}"
    );
    assert_eq!(report.rows, 0, "{report}");
    for row in &report.failures {
        assert!(
            row.error.contains("leave COMMIT and ROLLBACK to the run"),
            "{report}"
        );
    }
}

/// Statements one by one, as a closure would send them.
fn send(conn: &mut Conn, statements: &str) -> anyhow::Result<()> {
    for statement in statements.split("; ") {
        conn.batch_execute(statement)?;
    }
    Ok(())
}

#[test]
fn rows_that_a_closure_commits_itself_are_failures_that_say_so() {
    for (commit, fails) in [
        ("COMMIT", false),
        ("COMMIT", true),
        ("COMMIT; BEGIN", false),
        ("COMMIT; BEGIN", true),
    ] {
        let db = items(Key::Integer, 12);
        let report = partition(Key::Integer)
            .partitions(1)
            .batch(5)
            .run(&db.manager(), |batch, conn| {
                mark(batch, conn)?;
                send(conn, commit)?;
                anyhow::ensure!(!fails, "after the end");
                Ok(())
            })
            .unwrap();
        assert_all_failed(&report, 12);
        assert_eq!(pending(&db), 0, "{commit}: it is committed");
        let error = &report.failures[0].error;
        assert!(error.contains("pending no more"), "{error}");
        assert_eq!(error.contains("after the end"), fails, "{error}");
    }
}

#[test]
fn a_closure_that_panics_after_a_commit_has_failed_rows_too() {
    let db = items(Key::Integer, 3);
    let report = partition(Key::Integer)
        .run(&db.manager(), |batch: &[Item], conn: &mut Conn| {
            mark(batch, conn)?;
            send(conn, "COMMIT")?;
            panic!("after the end")
        })
        .unwrap();
    assert_all_failed(&report, 3);
}

#[test]
fn rows_that_a_closure_rolls_back_itself_are_failures() {
    for rollback in ["ROLLBACK", "ROLLBACK; BEGIN"] {
        let db = items(Key::Integer, 12);
        let report = partition(Key::Integer)
            .partitions(1)
            .batch(5)
            .run(&db.manager(), |batch, conn| {
                mark(batch, conn)?;
                send(conn, rollback)
            })
            .unwrap();
        assert_all_failed(&report, 12);
        assert_eq!(pending(&db), 12, "{rollback}");
    }
}

#[test]
fn a_closure_that_ends_the_transaction_fails() {
    let db = items(Key::Integer, 3);
    let report = partition(Key::Integer)
        .run(&db.manager(), |_: &[Item], conn: &mut Conn| {
            <Conn as Connection>::TransactionManager::rollback_transaction(conn)?;
            Ok(())
        })
        .unwrap();
    assert_all_failed(&report, 3);
    assert_eq!(pending(&db), 3);
}

/// DDL commits on MySQL and MariaDB.
#[test]
fn an_implicit_commit_is_noticed() {
    let Some(ddl) = IMPLICIT_COMMIT else { return };
    let db = items(Key::Integer, 6);
    for fails in [false, true] {
        db.execute("UPDATE items SET done = 0");
        let report = partition(Key::Integer)
            .partitions(1)
            .run(&db.manager(), |batch, conn| {
                mark(batch, conn)?;
                send(conn, ddl)?;
                anyhow::ensure!(!fails, "after the end");
                Ok(())
            })
            .unwrap();
        assert_all_failed(&report, 6);
        assert_eq!(pending(&db), 0);
    }
}

/// The same error is a failure of its row alone where it is handed on.
#[test]
fn an_error_that_ended_the_transaction_and_is_handed_on_is_a_failure_of_its_row() {
    let Some((prepare, conflict)) = SWALLOWED_ROLLBACK else {
        return;
    };
    let db = items(Key::Integer, 0);
    insert(&db, (0..40).map(|id| id.to_string()));
    db.execute(prepare);
    let report = partition(Key::Integer)
        .batch(10)
        .run(&db.manager(), |batch, conn| {
            mark(batch, conn)?;
            if has(batch, 17) {
                conn.batch_execute(conflict)?;
            }
            Ok(())
        })
        .unwrap();
    assert_eq!(failed(&report), [17], "{report}");
    assert_eq!((report.rows, pending(&db)), (39, 1));
    assert!(report.failures[0].error.contains("UNIQUE"), "{report}");
}

/// The error of one row that ends the transaction, and that the closure goes on after.
#[test]
fn a_swallowed_error_that_ended_the_transaction_is_a_failure() {
    let Some((prepare, conflict)) = SWALLOWED_ROLLBACK else {
        return;
    };
    let db = items(Key::Integer, 0);
    insert(&db, (0..40).map(|id| id.to_string()));
    db.execute(prepare);
    let report = partition(Key::Integer)
        .partitions(1)
        .batch(10)
        .run(&db.manager(), |batch, conn| {
            if has(batch, 17) {
                conn.batch_execute(conflict).unwrap_err();
            }
            mark(batch, conn)
        })
        .unwrap();
    assert_eq!(
        report.outcome,
        Outcome::Incomplete { busy: 0, failed: 10 },
        "{report}"
    );
    assert_eq!(failed(&report), (10..20).collect::<Vec<i64>>());
    assert_eq!(report.rows, 30);
    assert_eq!(
        pending(&db),
        0,
        "what the closure did after the error is committed"
    );
    assert!(report.failures[7].error.contains("pending no more"), "{report}");
}
