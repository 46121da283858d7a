use super::suite::items::{
    assert_circle, assert_complete, assert_each_done_once, has, insert, items, key, make_tables, mark,
    partition,
};
use super::{Conn, Db};
use diesel::connection::{CacheSize, SimpleConnection};
use diesel::prelude::*;
use diesel::sql_types::BigInt;
use job_partition::{Key, Partition, PartitionError};
use job_test::server::PostgresServer;
use std::sync::atomic::{AtomicUsize, Ordering};

#[derive(QueryableByName)]
struct Kept {
    #[diesel(sql_type = BigInt)]
    statements: i64,
    #[diesel(sql_type = BigInt)]
    settings: i64,
    #[diesel(sql_type = BigInt)]
    session_locks: i64,
}

/// Flaw 2 of "a worker is a number", to the letter: its keys were the integers from 0.
#[test]
fn flaw_plain_advisory_numbers_of_others_are_in_nobodys_way() {
    let db = items(Key::Integer, 300);
    let other = &mut db.connect();
    other
        .batch_execute("SELECT pg_advisory_lock(n) FROM generate_series(0, 100) n")
        .unwrap();
    assert_complete(&partition(Key::Integer).run(&db.manager(), mark).unwrap(), 300);
    assert_each_done_once(&db, 300);
}

#[test]
fn a_server_that_crashes_and_comes_back_loses_nothing_and_doubles_nothing() {
    let server = PostgresServer::start();
    let db = Db::new_on(&server.url());
    make_tables(&db, Key::Integer);
    insert(&db, (0..500).map(|number| key(Key::Integer, number)));
    let crashes = AtomicUsize::new(0);
    let report = partition(Key::Integer)
        .batch(50)
        .threads(2)
        .run(&db.manager(), |batch, conn| {
            mark(batch, conn)?;
            if (has(batch, 0) || has(batch, 300)) && crashes.fetch_add(1, Ordering::SeqCst) == 0 {
                server.stop_immediate();
                server.start_again();
            }
            Ok(())
        })
        .unwrap();
    assert!(report.is_complete(), "{report}");
    assert!(report.retries > 0, "{report}");
    assert_each_done_once(&db, 500);
}

/// What a proxy that gives each transaction another session cannot stand.
#[test]
fn nothing_stays_with_the_session() {
    let db = items(Key::Integer, 300);
    let report = partition(Key::Integer)
        .batch(20)
        .statement_cache(CacheSize::Disabled)
        .run(&db.manager(), |batch, conn: &mut Conn| {
            // One that Diesel would keep.
            diesel::select(diesel::dsl::now).execute(conn)?;
            let kept: Kept = diesel::sql_query(
                "SELECT (SELECT count(*) FROM pg_prepared_statements WHERE name <> '') AS statements,
                        (SELECT count(*) FROM pg_settings WHERE source = 'session' AND name NOT LIKE 'transaction%'
                           AND name NOT IN ('bytea_output', 'TimeZone', 'client_encoding')) AS settings,
                        (SELECT count(*) - 1 FROM pg_locks WHERE locktype = 'advisory' AND pid = pg_backend_pid()) AS session_locks",
            )
            .get_result(conn)?;
            assert_eq!((kept.statements, kept.settings, kept.session_locks), (0, 0, 0));
            mark(batch, conn)
        })
        .unwrap();
    assert_complete(&report, 300);
}

#[test]
fn a_table_may_stand_in_a_schema_and_have_a_small_key() {
    let db = Db::empty();
    let schema = db.text("SELECT current_schema()::text").unwrap();
    db.execute("CREATE TABLE small (id SMALLINT PRIMARY KEY, done INT NOT NULL); INSERT INTO small SELECT n, 0 FROM generate_series(-32768, 32767, 91) n");
    let report = Partition::of(format!("{schema}.small"))
        .pending("done = 0")
        .columns("CAST(id AS text) AS literal, 'x' AS name")
        .batch(10)
        .run(
            &db.manager(),
            |batch: &[super::suite::items::Item], conn: &mut Conn| {
                let keys: Vec<&str> = batch.iter().map(|item| item.literal.as_str()).collect();
                Ok(conn.batch_execute(&format!(
                    "UPDATE small SET done = 1 WHERE id IN ({})",
                    keys.join(", ")
                ))?)
            },
        )
        .unwrap();
    assert_complete(&report, 721);
}

#[test]
fn the_index_of_the_key_serves_a_range() {
    let db = items(Key::Integer, 20_000);
    db.execute("ANALYZE items");
    let report = partition(Key::Integer)
        .batch(100)
        .run(&db.manager(), mark)
        .unwrap();
    assert_complete(&report, 20_000);
    let read = || db.count("SELECT seq_tup_read FROM pg_stat_user_tables WHERE relid = 'items'::regclass");
    // One look over the whole table; more than a handful would mean that partitions are scanned.
    assert!(read() <= 3 * 20_000, "{} rows read in sequence", read());
}

#[test]
fn padded_and_domain_keys_are_compared_as_their_type_does() {
    let db = Db::empty();
    make_tables(&db, Key::Text);
    db.execute("CREATE DOMAIN code AS text; ALTER TABLE audit ALTER item TYPE text");
    for kind in ["char(12)", "code"] {
        db.execute(&format!(
            "DELETE FROM audit; DELETE FROM items; ALTER TABLE items ALTER id TYPE {kind}"
        ));
        db.execute("INSERT INTO items (id, name) SELECT 'k' || n, 'x' FROM generate_series(1, 300) n");
        assert_complete(
            &partition(Key::Text).batch(7).run(&db.manager(), mark).unwrap(),
            300,
        );
        assert_each_done_once(&db, 300);
    }
}

#[test]
fn a_key_of_another_kind_is_known_by_its_type() {
    for (kind, expected) in [
        (Key::Text, Key::Integer),
        (Key::Text, Key::Uuid),
        (Key::Integer, Key::Uuid),
        (Key::Uuid, Key::Integer),
    ] {
        // Without a row that could tell.
        let db = items(kind, 0);
        let error = partition(kind)
            .key("id", expected)
            .run(&db.manager(), mark)
            .unwrap_err();
        assert!(
            matches!(&error, PartitionError::WrongKey { expected: said, .. } if *said == expected),
            "{error}"
        );
    }
}

#[test]
fn an_oid_is_no_integer() {
    let db = items(Key::Integer, 0);
    db.execute("ALTER TABLE items ALTER id TYPE oid");
    let error = partition(Key::Integer).run(&db.manager(), mark).unwrap_err();
    assert!(matches!(&error, PartitionError::WrongKey { .. }), "{error}");
}

/// Keys that a connection reads with a loss are equal, and greater than what they are read as.
#[test]
fn keys_that_lead_in_a_circle_are_an_error_and_not_a_loop() {
    let db = items(Key::Text, 0);
    db.execute(
        "ALTER TABLE items ALTER id TYPE double precision USING 0;
         INSERT INTO items (id, name) SELECT 1 + n * 1e-15, 'item' FROM generate_series(1, 40) n",
    );
    assert_circle(&db, |conn| conn.batch_execute("SET extra_float_digits = 0"));
}

#[test]
fn an_index_over_some_rows_or_of_a_parent_makes_no_key_unique() {
    for tables in [
        "CREATE TABLE items (id BIGINT NOT NULL, done INT); CREATE UNIQUE INDEX ON items (id) WHERE done = 1",
        "CREATE TABLE items (id BIGINT NOT NULL, done INT); CREATE UNIQUE INDEX ON items (abs(id))",
        "CREATE TABLE items (id BIGINT PRIMARY KEY, done INT); CREATE TABLE more () INHERITS (items)",
        "CREATE TABLE items (id BIGINT, day DATE, done INT, PRIMARY KEY (day, id)) PARTITION BY RANGE (day)",
        "CREATE TABLE others (id BIGINT PRIMARY KEY, done INT); CREATE VIEW items AS SELECT * FROM others",
    ] {
        let db = Db::empty();
        db.execute(tables);
        let error = partition(Key::Integer).run(&db.manager(), mark).unwrap_err();
        assert!(matches!(error, PartitionError::NotUnique { .. }), "{error}");
    }
    let db = Db::empty();
    db.execute(
        "CREATE TABLE items (id BIGINT PRIMARY KEY, name TEXT, done INT) PARTITION BY RANGE (id);
         CREATE TABLE low PARTITION OF items FOR VALUES FROM (0) TO (100)",
    );
    assert_complete(&partition(Key::Integer).run(&db.manager(), mark).unwrap(), 0);
}

#[test]
fn a_view_whose_rows_cannot_be_locked_is_an_error() {
    let db = items(Key::Integer, 10);
    db.execute("CREATE VIEW copies AS SELECT DISTINCT * FROM items");
    let error = Partition::of("copies")
        .key_is_unique()
        .pending("done = 0")
        .columns("CAST(id AS text) AS literal, name")
        .run(&db.manager(), mark)
        .unwrap_err();
    assert!(
        error.to_string().contains("is not allowed with DISTINCT"),
        "{error}"
    );
}

#[test]
fn an_index_of_another_collation_makes_no_key_unique_whose_collation_takes_texts_for_equal() {
    let db = Db::empty();
    db.execute(
        "CREATE COLLATION any_case (provider = icu, locale = 'und-u-ks-level2', deterministic = false);
         CREATE TABLE items (id TEXT COLLATE any_case NOT NULL, name TEXT, done INT NOT NULL DEFAULT 0);
         CREATE UNIQUE INDEX bytes ON items (id COLLATE \"C\");
         INSERT INTO items (id, name) VALUES ('a', 'item'), ('b', 'item')",
    );
    db.execute("CREATE TABLE audit (item TEXT NOT NULL, worker TEXT NOT NULL)");
    let error = partition(Key::Text).run(&db.manager(), mark).unwrap_err();
    assert!(matches!(error, PartitionError::NotUnique { .. }), "{error}");
    db.execute("CREATE UNIQUE INDEX own ON items (id)");
    assert_complete(&partition(Key::Text).run(&db.manager(), mark).unwrap(), 2);
}
