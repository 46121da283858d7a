use super::Db;
use diesel::connection::SimpleConnection;
use diesel::{Connection, MysqlConnection};
use job_db::{Database, Fault};
use job_test::server::MariadbServer;

#[test]
fn a_private_server_is_killed_and_keeps_what_was_committed() {
    let mut server = MariadbServer::start();
    let db = Db::new_on(&server.url());
    assert_eq!(
        db.count("SELECT CAST(@@innodb_flush_log_at_trx_commit AS SIGNED)"),
        1
    );
    let conn = &mut db.connect();
    conn.batch_execute("INSERT INTO locks (name) VALUES ('kept')")
        .unwrap();

    server.kill();
    let error = conn.batch_execute("SELECT 1").unwrap_err();
    assert_eq!(
        diesel::mysql::Mysql::fault(&error),
        Fault::Disconnected,
        "{error}"
    );
    assert!(MysqlConnection::establish(db.url()).is_err());

    server.start_again();
    assert_eq!(db.count("SELECT count(*) FROM locks"), 1);
    db.assert_invariants();
}
