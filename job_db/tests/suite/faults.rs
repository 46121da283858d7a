use super::{Conn, Db};
use diesel::connection::SimpleConnection;
use diesel::result::{DatabaseErrorKind, Error};
use job_db::{Database, DbConnection, Fault};
use std::time::{Duration, Instant};

type Backend = <Conn as DbConnection>::Db;

#[test]
fn a_prepared_session_gives_up_waiting_as_contended() {
    let db = Db::new();
    db.execute("INSERT INTO locks (name) VALUES ('wanted')");
    let holder = &mut db.connect();
    let waiter = &mut db.connect();
    Backend::prepare_session(waiter, Duration::from_millis(50)).unwrap();
    let update = "UPDATE locks SET token = token + 1 WHERE name = 'wanted'";
    holder.batch_execute(&format!("BEGIN; {update}")).unwrap();
    let begun = Instant::now();
    let error = waiter.batch_execute(update).unwrap_err();
    assert_eq!(Backend::fault(&error), Fault::Contended, "{error}");
    // MySQL and MariaDB count whole seconds.
    let waited = begun.elapsed();
    assert!(waited < Duration::from_secs(5), "{waited:?}");
    holder.batch_execute("COMMIT").unwrap();
    waiter.batch_execute(update).unwrap();
}

#[test]
fn an_apps_mistakes_are_not_worth_another_try() {
    let db = Db::new();
    let conn = &mut db.connect();
    for sql in [
        "SELEKT 1",
        "SELECT nothing FROM locks",
        "INSERT INTO job_schema_versions (version, applied_at) SELECT version, applied_at FROM job_schema_versions",
        "INSERT INTO locks (name) VALUES (NULL)",
    ] {
        let error = conn.batch_execute(sql).unwrap_err();
        assert_eq!(Backend::fault(&error), Fault::Other, "{error}");
    }
    assert_eq!(Backend::fault(&Error::NotFound), Fault::Other);
}

#[test]
fn what_diesel_knows_by_itself_is_taken_from_it() {
    let error = |kind| Error::DatabaseError(kind, Box::new("in any language".to_owned()));
    for (kind, fault) in [
        (DatabaseErrorKind::SerializationFailure, Fault::Contended),
        (DatabaseErrorKind::ClosedConnection, Fault::Disconnected),
        (DatabaseErrorKind::UnableToSendCommand, Fault::Disconnected),
        (DatabaseErrorKind::UniqueViolation, Fault::Other),
    ] {
        assert_eq!(Backend::fault(&error(kind)), fault);
    }
    assert_eq!(
        Backend::fault(&Error::BrokenTransactionManager),
        Fault::Disconnected
    );
    let in_commit = Error::RollbackErrorOnCommit {
        rollback_error: Box::new(Error::NotInTransaction),
        commit_error: Box::new(error(DatabaseErrorKind::SerializationFailure)),
    };
    assert_eq!(Backend::fault(&in_commit), Fault::Contended);
}
