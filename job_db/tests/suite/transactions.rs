use super::{Conn, Db};
use diesel::connection::SimpleConnection;
use diesel::prelude::*;
use diesel::result::Error;
use job_db::{Database, DbConnection, roll_back_to, transaction_depth};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::thread;

type Backend = <Conn as DbConnection>::Db;

fn add_lock(conn: &mut Conn, name: &str) -> QueryResult<()> {
    conn.batch_execute(&format!("INSERT INTO locks (name) VALUES ('{name}')"))
}

#[test]
fn depth_counts_transactions_and_savepoints() {
    let db = Db::empty();
    let conn = &mut db.connect();
    assert_eq!(transaction_depth(conn), 0);
    conn.transaction(|conn| {
        assert_eq!(transaction_depth(conn), 1);
        conn.transaction(|conn| {
            assert_eq!(transaction_depth(conn), 2);
            QueryResult::Ok(())
        })
    })
    .unwrap();
    assert_eq!(transaction_depth(conn), 0);
}

#[test]
fn what_a_panic_left_open_is_rolled_back() {
    let db = Db::new();
    let conn = &mut db.connect();
    let result: Result<QueryResult<()>, _> = catch_unwind(AssertUnwindSafe(|| {
        conn.transaction(|conn| {
            add_lock(conn, "never")?;
            conn.transaction(|_| panic!("in the middle"))
        })
    }));
    assert!(result.is_err());
    assert_eq!(transaction_depth(conn), 2);
    roll_back_to(conn, 0);
    assert_eq!(transaction_depth(conn), 0);
    add_lock(conn, "after").unwrap();
    assert_eq!(db.texts("SELECT owner FROM locks").len(), 1);
}

#[test]
fn rolling_back_stops_at_the_callers_own_transaction() {
    let db = Db::new();
    let conn = &mut db.connect();
    conn.transaction(|conn| {
        add_lock(conn, "kept")?;
        let result: Result<QueryResult<()>, _> = catch_unwind(AssertUnwindSafe(|| {
            conn.transaction(|conn| {
                add_lock(conn, "never")?;
                panic!("in the middle")
            })
        }));
        assert!(result.is_err());
        roll_back_to(conn, 1);
        QueryResult::Ok(())
    })
    .unwrap();
    assert_eq!(db.count("SELECT count(*) FROM locks WHERE name = 'kept'"), 1);
    assert_eq!(db.count("SELECT count(*) FROM locks"), 1);
}

#[test]
fn a_write_transaction_that_fails_writes_nothing() {
    let db = Db::new();
    let conn = &mut db.connect();
    let result: QueryResult<()> = Backend::write_transaction(conn, |conn| {
        add_lock(conn, "never")?;
        Err(Error::RollbackTransaction)
    });
    assert_eq!(result, Err(Error::RollbackTransaction));
    assert_eq!(db.count("SELECT count(*) FROM locks"), 0);
}

#[test]
fn a_write_transaction_nests_in_the_callers() {
    let db = Db::new();
    let conn = &mut db.connect();
    conn.transaction(|conn| {
        add_lock(conn, "outer")?;
        let inner: QueryResult<()> = Backend::write_transaction(conn, |conn| {
            add_lock(conn, "inner")?;
            Err(Error::RollbackTransaction)
        });
        assert!(inner.is_err());
        QueryResult::Ok(())
    })
    .unwrap();
    assert_eq!(db.count("SELECT count(*) FROM locks WHERE name = 'outer'"), 1);
    assert_eq!(db.count("SELECT count(*) FROM locks"), 1);
}

#[test]
fn write_transactions_that_read_first_do_not_fail_each_other() {
    let db = Db::new();
    db.execute("INSERT INTO locks (name) VALUES ('counter')");
    thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                let conn = &mut db.connect();
                for _ in 0..25 {
                    Backend::write_transaction(conn, |conn| {
                        diesel::dsl::sql::<diesel::sql_types::BigInt>("SELECT count(*) FROM locks")
                            .get_result::<i64>(conn)?;
                        conn.batch_execute("UPDATE locks SET token = token + 1 WHERE name = 'counter'")
                    })
                    .unwrap();
                }
            });
        }
    });
    assert_eq!(db.count("SELECT token FROM locks"), 100);
}
