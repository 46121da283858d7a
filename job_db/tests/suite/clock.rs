use super::{Conn, Db};
use chrono::{DateTime, Utc};
use diesel::RunQueryDsl;
use job_db::{Database, DbConnection, Instant, now};

/// The time as a statement of ours writes it.
fn now_in_a_statement(conn: &mut Conn) -> DateTime<Utc> {
    let sql = format!("SELECT {}", <Conn as DbConnection>::Db::NOW_SQL);
    diesel::dsl::sql::<Instant>(&sql).get_result(conn).unwrap()
}

#[test]
fn the_clock_of_statements_is_the_clock_that_is_asked() {
    let db = Db::empty();
    let conn = &mut db.connect();
    let before = now(conn).unwrap();
    let time = now_in_a_statement(conn);
    let after = now(conn).unwrap();
    assert!(before <= time && time <= after, "{before} {time} {after}");
}

#[test]
fn it_goes_on_inside_a_transaction() {
    use diesel::Connection;
    let db = Db::empty();
    let conn = &mut db.connect();
    let (first, second) = conn
        .transaction(|conn| {
            let first = now(conn)?;
            // A clock may stand still for a moment, but not for ever.
            let mut second = now(conn)?;
            while second == first {
                second = now(conn)?;
            }
            Ok::<_, diesel::result::Error>((first, second))
        })
        .unwrap();
    assert!(first < second);
}
