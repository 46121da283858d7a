use super::Db;
use diesel::connection::SimpleConnection;
use diesel::{Connection, PgConnection};
use job_db::{Database, Fault};
use job_test::server::PostgresServer;

#[test]
fn a_private_server_is_stopped_and_keeps_what_was_committed() {
    let server = PostgresServer::start();
    let db = Db::new_on(&server.url());
    assert_eq!(db.text("SHOW fsync").as_deref(), Some("on"));
    assert_eq!(db.text("SHOW synchronous_commit").as_deref(), Some("on"));
    let conn = &mut db.connect();
    conn.batch_execute("INSERT INTO locks (name) VALUES ('kept')")
        .unwrap();

    server.stop_immediate();
    let error = conn.batch_execute("SELECT 1").unwrap_err();
    assert_eq!(diesel::pg::Pg::fault(&error), Fault::Disconnected, "{error}");
    assert!(PgConnection::establish(db.url()).is_err());

    server.start_again();
    assert_eq!(db.count("SELECT count(*) FROM locks"), 1);
    db.assert_invariants();
}
