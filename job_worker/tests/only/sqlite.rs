//! A statement that ends the whole transaction.

#[path = "refused.rs"]
mod refused; // outcomes that the database never takes

use super::Db;
use super::suite::transactions::not_completed_where_the_transaction_ended;
use diesel::connection::SimpleConnection;

#[test]
fn a_swallowed_rollback_does_not_complete_the_job_in_that_attempt() {
    let db = Db::new();
    db.execute("CREATE TABLE taken (id BIGINT PRIMARY KEY); INSERT INTO taken VALUES (1)");
    not_completed_where_the_transaction_ended(&db, &[2], |conn| {
        let error = conn.batch_execute("INSERT OR ROLLBACK INTO taken VALUES (1)");
        assert!(error.is_err());
        Ok(())
    });
}

#[test]
fn an_outcome_that_is_refused_whatever_it_is_does_not_hold_up_others() {
    refused::others_are_recorded_beside_it(
        "CREATE TRIGGER refuse BEFORE INSERT ON jobs_finished WHEN NEW.job_id = ID
           BEGIN SELECT RAISE(ABORT, 'never'); END",
        "DROP TRIGGER refuse",
    );
}
