use super::{Db, only};
use diesel::Expression;
use diesel::query_source::{Column, Table};
use diesel::sql_types::{SqlType, is_nullable};
use job_core::schema;

/// Whether a column may be NULL, by its SQL type.
trait MayBeNull {
    const MAY: bool;
}
impl MayBeNull for is_nullable::IsNullable {
    const MAY: bool = true;
}
impl MayBeNull for is_nullable::NotNull {
    const MAY: bool = false;
}

/// Name and nullability of each column, in order.
trait Columns {
    fn columns() -> Vec<(String, bool)>;
}

macro_rules! tuples {
    ($($($column:ident)+;)+) => {$(
        impl<$($column),+> Columns for ($($column,)+)
        where
            $(
                $column: Column + Expression,
                <$column as Expression>::SqlType: SqlType<IsNull: MayBeNull>,
            )+
        {
            fn columns() -> Vec<(String, bool)> {
                vec![$(($column::NAME.to_owned(), <<<$column as Expression>::SqlType as SqlType>::IsNull as MayBeNull>::MAY)),+]
            }
        }
    )+};
}
tuples! {
    A B;
    A B C D;
    A B C D E;
    A B C D E F;
    A B C D E F G;
    A B C D E F G H;
    A B C D E F G H I;
}

fn check<T: Table>(db: &Db, name: &str, _: T)
where
    T::AllColumns: Columns,
{
    assert_eq!(T::AllColumns::columns(), only::columns(db, name), "{name}");
}

#[test]
fn case_57_schema_rs_is_what_the_catalogue_says() {
    let db = Db::new();
    check(&db, "jobs", schema::jobs::table);
    check(&db, "jobs_scheduled", schema::jobs_scheduled::table);
    check(&db, "jobs_new", schema::jobs_new::table);
    check(&db, "jobs_processing", schema::jobs_processing::table);
    check(&db, "jobs_finished", schema::jobs_finished::table);
    check(&db, "job_failures", schema::job_failures::table);
    check(&db, "unique_keys", schema::unique_keys::table);
    check(&db, "workers", schema::workers::table);
    // Together with the locks, which are job_lock's, that is all.
    assert_eq!(job_db::TABLES.len(), 9);
}

#[test]
fn the_tables_serve_queries_of_an_apps_own() {
    use diesel::prelude::*;
    let db = Db::new();
    let conn = &mut db.connect();
    let ids = super::support::one_in_each_status(conn);
    let waiting: Vec<(i64, String, i32)> = schema::jobs::table
        .inner_join(schema::jobs_new::table.on(schema::jobs_new::job_id.eq(schema::jobs::id)))
        .filter(schema::jobs::queue.eq("default"))
        .select((schema::jobs::id, schema::jobs::kind, schema::jobs_new::attempts))
        .load(conn)
        .unwrap();
    assert_eq!(waiting, [(ids[1], "echo".to_owned(), 0)]);
    let times: Vec<chrono::DateTime<chrono::Utc>> = schema::jobs_finished::table
        .select(schema::jobs_finished::finished_at)
        .load(conn)
        .unwrap();
    assert_eq!(times.len(), 3);
}
