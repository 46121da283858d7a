//! The example in small, once on each database that is enabled.

use std::process::Command;

/// Runs it, and gives what it writes.
fn backfill(url: &str) -> String {
    let done = Command::new(env!("CARGO_BIN_EXE_backfill"))
        .args(["20000", "3"])
        .env("DATABASE_URL", url)
        .output()
        .expect("a process");
    let text = String::from_utf8_lossy(&done.stdout).into_owned();
    assert!(
        done.status.success(),
        "{text}{}",
        String::from_utf8_lossy(&done.stderr)
    );
    text
}

fn check(text: &str) {
    assert!(text.contains("19999 rows filled in "), "{text}");
    assert!(
        text.contains("by 7 worker processes, 4 of them killed; done twice: 0; not done: 1"),
        "{text}"
    );
    assert!(
        text.ends_with("each row but the poison one was done exactly once\n"),
        "{text}"
    );
}

#[cfg(feature = "postgres")]
#[test]
fn each_row_is_done_once_on_postgres() {
    check(&backfill(job_test::postgres::Db::empty().url()));
}

#[cfg(feature = "mysql")]
#[test]
fn each_row_is_done_once_on_mysql() {
    check(&backfill(job_test::mysql::Db::empty().url()));
}

#[cfg(feature = "sqlite")]
#[test]
fn each_row_is_done_once_on_sqlite() {
    check(&backfill(job_test::sqlite::Db::empty().url()));
}

#[cfg(feature = "postgres")]
#[test]
fn a_url_that_is_not_understood_shows_no_password() {
    let output = Command::new(env!("CARGO_BIN_EXE_backfill"))
        .env("DATABASE_URL", "postgres://user:secret/@127.0.0.1/db")
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(
        said.contains("cannot connect to the database of DATABASE_URL"),
        "{said}"
    );
    assert!(!said.contains("secret"), "{said}");
}

#[test]
fn numbers_that_are_none_are_refused_with_what_is_accepted() {
    let too_many =
        "\"4\" is one argument too many: say how many rows and how many workers, or nothing".to_owned();
    let rows = |not: &str| format!("the number of rows is a whole number from 1 to 1000000000, not {not:?}");
    let workers = |not: &str| format!("the number of workers is a whole number from 1 to 1000, not {not:?}");
    for (args, expected) in [
        (&["0"][..], rows("0")),
        (&["x"], rows("x")),
        (&["20000", "0"], workers("0")),
        (&["20000", "x"], workers("x")),
        (&["20000", "-1"], workers("-1")),
        (&["20000", "1001"], workers("1001")),
        (&["20000", "3", "4"], too_many),
    ] {
        let output = Command::new(env!("CARGO_BIN_EXE_backfill"))
            .args(args)
            .env("DATABASE_URL", "/no/such/folder/backfill.sqlite3")
            .output()
            .unwrap();
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(said.starts_with(&format!("Error: {expected}\n")), "{said}");
        assert_eq!(output.status.code(), Some(1));
    }
}
