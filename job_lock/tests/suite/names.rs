use super::support::db_with;
use job_lock::{Lock, LockError};

#[test]
fn names_differ_by_every_byte() {
    let db = db_with(&[]);
    let conn = &mut db.connect();
    let longest = "x".repeat(255);
    let names = [
        "a",
        "a ",
        " a",
        "A",
        "a\t",
        "a\n",
        "ä",
        "a\u{308}",
        "nightly report",
        "🦀",
        "🦀 ",
        "%",
        "_",
        "'; DROP TABLE locks; --",
        "\\",
        "0",
        "00",
        longest.as_str(),
    ];
    for name in names {
        assert!(Lock::create(conn, name).unwrap(), "{name:?}");
    }
    for name in names {
        let token = Lock::synchronize(conn, name, |locked| {
            assert_eq!(locked.name(), name);
            Ok::<_, LockError>(locked.token())
        });
        assert_eq!(token.unwrap(), 1, "{name:?}");
    }
    let mut listed: Vec<String> = Lock::list(conn)
        .unwrap()
        .into_iter()
        .map(|row| row.name)
        .collect();
    let mut expected = names.to_vec();
    listed.sort_unstable();
    expected.sort_unstable();
    assert_eq!(listed, expected);
}

#[test]
fn names_that_no_lock_can_have_are_refused() {
    let db = db_with(&[]);
    let conn = &mut db.connect();
    let umlauts = "ä".repeat(128);
    let too_long = "x".repeat(256);
    for name in ["", "\0", "a\0b", too_long.as_str(), umlauts.as_str()] {
        assert!(matches!(
            Lock::create(conn, name),
            Err(LockError::InvalidName { .. })
        ));
        let result: Result<(), LockError> = Lock::on(name)
            .create_missing()
            .synchronize(conn, |_| panic!("ran"));
        assert!(matches!(result, Err(LockError::InvalidName { .. })), "{name:?}");
    }
    assert_eq!(db.count("SELECT count(*) FROM locks"), 0);
}
