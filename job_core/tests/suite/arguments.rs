use super::limits::refused;
use super::support::{Echo, any, claimed, echo, register};
use super::{Conn, Db};
use job_core::{EnqueueError, Job, Perform, Run};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

#[test]
fn arguments_have_a_size_limit_that_can_be_moved() {
    let db = Db::new();
    let big = || echo(&"x".repeat(1 << 20)).job();
    refused(
        &db,
        big,
        |error| matches!(error, EnqueueError::ArgsTooLong { bytes, max, .. } if *bytes > *max && *max == 1 << 20),
        "keep the data in a table or a file",
    );
    refused(
        &db,
        || any().max_args_bytes(5),
        |error| {
            matches!(
                error,
                EnqueueError::ArgsTooLong {
                    bytes: 14,
                    max: 5,
                    ..
                }
            )
        },
        "are 14 bytes of JSON and may be 5",
    );
    let conn: &mut Conn = &mut db.connect();
    let job = big().max_args_bytes(2 << 20).enqueue(conn).unwrap();
    assert_eq!(job.args::<Echo>().unwrap().text.len(), 1 << 20);
    db.assert_invariants();
}

#[derive(Serialize, Deserialize)]
struct Table {
    cells: std::collections::HashMap<(i32, i32), i32>,
}

impl Perform for Table {
    const KIND: &'static str = "table";
    type Context = ();
    type Output = ();
    fn perform(&self, _: &Run<'_, ()>) -> anyhow::Result<()> {
        Ok(())
    }
}

#[test]
fn arguments_that_are_no_json_are_refused() {
    let db = Db::new();
    let table = || {
        Table {
            cells: [((1, 2), 3)].into(),
        }
        .job()
    };
    let encode = |error: &EnqueueError| matches!(error, EnqueueError::Encode { kind: "table", .. });
    refused(
        &db,
        table,
        encode,
        "the arguments of table cannot be written as JSON",
    );
}

#[test]
fn case_27_nul_in_the_arguments_is_kept_or_refused_with_a_clear_error() {
    let db = Db::new();
    let nul = || echo("a\0b").job();
    if <<Conn as job_db::DbConnection>::Db as job_core::Database>::JSON_HOLDS_NUL {
        let job = nul().enqueue(&mut db.connect()).unwrap();
        let found = Job::find(&mut db.connect(), job.id).unwrap();
        assert_eq!(found.args::<Echo>().unwrap().text, "a\0b");
        db.assert_invariants();
    } else {
        let is_nul = |error: &EnqueueError| matches!(error, EnqueueError::NulInArgs { .. });
        refused(&db, nul, is_nul, "hold the character NUL");
    }
    // What only looks like a NUL is none.
    let conn = &mut db.connect();
    let job = echo("\\u0000 \\").job().enqueue(conn).unwrap();
    let found = Job::find(conn, job.id).unwrap();
    assert_eq!(found.args::<Echo>().unwrap().text, "\\u0000 \\");
}

#[derive(Serialize, Deserialize)]
struct Tree(Vec<Tree>);

impl Perform for Tree {
    const KIND: &'static str = "tree";
    type Context = ();
    type Output = ();
    fn perform(&self, _: &Run<'_, ()>) -> anyhow::Result<()> {
        Ok(())
    }
}

fn tree(depth: usize) -> Tree {
    (1..depth).fold(Tree(Vec::new()), |inner, _| Tree(vec![inner]))
}

#[test]
fn arguments_that_are_too_deep_to_be_decoded_are_refused() {
    let db = Db::new();
    for depth in [128, 129, 1_000] {
        refused(
            &db,
            || tree(depth).job(),
            |error| matches!(error, EnqueueError::ArgsTooDeep { kind: "tree" }),
            "more than 127 levels deep",
        );
    }
    let job = tree(127).enqueue(&mut db.connect()).unwrap();
    Job::find(&mut db.connect(), job.id)
        .unwrap()
        .args::<Tree>()
        .unwrap();
    db.assert_invariants();
}

#[test]
fn numbers_are_kept_to_the_last_digit() {
    let db = Db::new();
    let conn = &mut db.connect();
    let worker = register(conn);
    let numbers = (
        [
            f64::MAX,
            f64::MIN_POSITIVE,
            0.1,
            1.0 / 3.0,
            -0.0,
            123_456.789_012_345_67,
            5e-324,
        ],
        [u64::MAX, i64::MAX as u64 + 1, (1 << 53) + 1],
        [i64::MIN, -1],
    );
    let job = claimed(conn, &worker, any());
    job.complete(conn, &numbers).unwrap();
    let kept: ([f64; 7], [u64; 3], [i64; 2]) = Job::find(conn, job.id()).unwrap().output().unwrap();
    assert_eq!(kept, numbers);
    db.assert_invariants();
}

/// A job that hands on a document that somebody else wrote.
#[derive(Debug, Serialize, Deserialize)]
struct Document(Box<RawValue>);

impl Perform for Document {
    const KIND: &'static str = "document";
    type Context = ();
    type Output = ();
    fn perform(&self, _: &Run<'_, ()>) -> anyhow::Result<()> {
        Ok(())
    }
}

fn document(text: &str) -> Document {
    Document(RawValue::from_string(text.to_owned()).unwrap())
}

#[test]
fn numbers_that_no_float_holds_are_refused_as_arguments() {
    let db = Db::new();
    let is_it = |error: &EnqueueError| matches!(error, EnqueueError::HugeNumberInArgs { kind: "document" });
    // PostgreSQL would give the last one back with 131,071 zeros for each number.
    let many = format!("[{}]", ["1e131071"; 100].join(","));
    for text in ["1e401", "[1, -2.5E+16000]", r#"{"n": 1e-99999}"#, &many] {
        refused(
            &db,
            || document(text).job(),
            is_it,
            "a number with an exponent above 400",
        );
    }
    let conn = &mut db.connect();
    for text in ["1.7976931348623157e308", r#"["1e999"]"#] {
        let job = document(text).enqueue(conn).unwrap();
        let found = Job::find(conn, job.id).unwrap();
        let args = found.args::<serde_json::Value>().unwrap();
        assert_eq!(args, serde_json::from_str::<serde_json::Value>(text).unwrap());
    }
    db.assert_invariants();
}
