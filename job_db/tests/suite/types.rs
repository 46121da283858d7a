use super::{Conn, Db};
use chrono::{DateTime, Utc};
use diesel::RunQueryDsl;
use job_db::{DbConnection, JsonText};

type Backend = <Conn as DbConnection>::Db;

job_db::statement! {
    struct Insert<'a> on Backend {
        id: i64 => BigInt,
        host: &'a str => Text,
        time: DateTime<Utc> => job_db::Instant,
        document: JsonText => job_db::JsonDoc,
    } -> ();
    "INSERT INTO workers (pid, started_at, queues, id, host, beat_at, kinds)
     VALUES (0, " time ", '[]', " id ", " host ", " time ", " document ")"
}

job_db::statement! {
    struct FindByTime<'a> on Backend { host: &'a str => Text, time: DateTime<Utc> => job_db::Instant }
        -> (job_db::Instant, job_db::JsonDoc);
    "SELECT beat_at, kinds FROM workers WHERE host = " host " AND started_at = " time
}

job_db::statement! {
    struct IdsByTime on Backend {} -> BigInt;
    "SELECT id FROM workers ORDER BY started_at"
}

job_db::statement! {
    struct DeleteAll on Backend {} -> ();
    "DELETE FROM workers"
}

const HOST: &str = "host 🦀";

fn instant(text: &str) -> DateTime<Utc> {
    text.parse().unwrap()
}

fn insert(conn: &mut Conn, id: i64, time: DateTime<Utc>, document: &str) {
    let document = JsonText(document.to_owned());
    let row = Insert {
        id,
        host: HOST,
        time,
        document,
    };
    row.execute(conn).unwrap();
}

/// Writes a row with these values and reads it again, by its time.
fn round_trip(conn: &mut Conn, time: DateTime<Utc>, document: &str) -> (DateTime<Utc>, JsonText) {
    DeleteAll {}.execute(conn).unwrap();
    insert(conn, 1, time, document);
    FindByTime { host: HOST, time }.get_result(conn).unwrap()
}

#[test]
fn instants_keep_their_microseconds() {
    let db = Db::new();
    let conn = &mut db.connect();
    for text in [
        "2026-03-29T01:30:00.123456Z",
        "2026-10-25T02:30:00.000001Z",
        "1970-01-01T00:00:00Z",
        "1969-12-31T23:59:59.999999Z",
        "1000-01-01T00:00:00Z",
        "9999-12-31T23:59:59.999999Z",
    ] {
        let time = instant(text);
        assert_eq!(round_trip(conn, time, "{}").0, time);
    }
}

#[test]
fn documents_keep_their_content() {
    let db = Db::new();
    let conn = &mut db.connect();
    let time = instant("2026-01-01T00:00:00Z");
    let long = format!("[\"{}\"]", "long 🚢 ".repeat(100_000));
    let deep = format!("{}{}", "[".repeat(100), "]".repeat(100));
    for document in [
        r#"{"crab": "🦀", "line": "é\n\"'\\ % _ ?"}"#,
        "null",
        "[1, 2.50, -3, true]",
        "12345678901234567890123",
        &long,
        &deep,
    ] {
        assert_eq!(round_trip(conn, time, document).1.0, document);
    }
}

#[test]
fn instants_are_in_the_order_of_time() {
    let db = Db::new();
    let conn = &mut db.connect();
    let times = [
        "1969-07-20T20:17:40Z",
        "2026-01-01T00:00:00.000009Z",
        "2026-01-01T00:00:00.000010Z",
        "2026-01-01T00:00:01Z",
    ];
    for (time, id) in times.iter().zip([3_i64, 1, 4, 2]) {
        insert(conn, id, instant(time), "{}");
    }
    let ids = IdsByTime {}.load::<i64>(conn);
    assert_eq!(ids.unwrap(), [3, 1, 4, 2]);
}
