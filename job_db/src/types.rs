//! Two SQL types that let one `table!` and one model serve all three databases.

use diesel::deserialize::FromSqlRow;
use diesel::expression::AsExpression;
use diesel::query_builder::QueryId;
use diesel::sql_types::SqlType;

/// A point in time, in UTC, to the microsecond: `timestamptz`, `DATETIME(6)`, or an integer of microseconds. In Rust
/// it is a `chrono::DateTime<Utc>`.
#[derive(Clone, Copy, Debug, SqlType, QueryId)]
#[cfg_attr(feature = "postgres", diesel(postgres_type(oid = 1184, array_oid = 1185)))]
#[cfg_attr(feature = "mysql", diesel(mysql_type(name = "DateTime")))]
#[cfg_attr(feature = "sqlite", diesel(sqlite_type(name = "Long")))]
pub struct Instant;

/// A JSON document: `json` on PostgreSQL, which is read and written as it is, and text elsewhere. In Rust it is a
/// [`JsonText`].
#[derive(Clone, Copy, Debug, SqlType, QueryId)]
#[cfg_attr(feature = "postgres", diesel(postgres_type(oid = 114, array_oid = 199)))]
#[cfg_attr(feature = "mysql", diesel(mysql_type(name = "String")))]
#[cfg_attr(feature = "sqlite", diesel(sqlite_type(name = "Text")))]
pub struct JsonDoc;

/// The text of a JSON document, neither parsed nor checked, so that a job's arguments are decoded once, into their own
/// type.
#[derive(Clone, Debug, PartialEq, Eq, AsExpression, FromSqlRow)]
#[diesel(sql_type = JsonDoc)]
pub struct JsonText(pub String);

#[cfg(feature = "postgres")]
mod postgres {
    use super::{Instant, JsonDoc, JsonText};
    use chrono::{DateTime, Utc};
    use diesel::deserialize::{self, FromSql};
    use diesel::pg::{Pg, PgValue};
    use diesel::serialize::{self, IsNull, Output, ToSql};
    use diesel::sql_types::Timestamptz;
    use std::io::Write;

    impl FromSql<Instant, Pg> for DateTime<Utc> {
        fn from_sql(value: PgValue<'_>) -> deserialize::Result<Self> {
            FromSql::<Timestamptz, Pg>::from_sql(value)
        }
    }

    impl ToSql<Instant, Pg> for DateTime<Utc> {
        fn to_sql<'b>(&'b self, out: &mut Output<'b, '_, Pg>) -> serialize::Result {
            ToSql::<Timestamptz, Pg>::to_sql(self, out)
        }
    }

    impl FromSql<JsonDoc, Pg> for JsonText {
        fn from_sql(value: PgValue<'_>) -> deserialize::Result<Self> {
            Ok(JsonText(String::from_utf8(value.as_bytes().to_vec())?))
        }
    }

    impl ToSql<JsonDoc, Pg> for JsonText {
        fn to_sql<'b>(&'b self, out: &mut Output<'b, '_, Pg>) -> serialize::Result {
            out.write_all(self.0.as_bytes())?;
            Ok(IsNull::No)
        }
    }
}

#[cfg(feature = "mysql")]
mod mysql {
    use super::{Instant, JsonDoc, JsonText};
    use chrono::{DateTime, NaiveDateTime, Utc};
    use diesel::deserialize::{self, FromSql};
    use diesel::mysql::{Mysql, MysqlValue};
    use diesel::serialize::{self, IsNull, Output, ToSql};
    use diesel::sql_types::{Datetime, Text};

    impl FromSql<Instant, Mysql> for DateTime<Utc> {
        fn from_sql(value: MysqlValue<'_>) -> deserialize::Result<Self> {
            <NaiveDateTime as FromSql<Datetime, Mysql>>::from_sql(value).map(|time| time.and_utc())
        }
    }

    impl ToSql<Instant, Mysql> for DateTime<Utc> {
        fn to_sql<'b>(&'b self, out: &mut Output<'b, '_, Mysql>) -> serialize::Result {
            ToSql::<Datetime, Mysql>::to_sql(&self.naive_utc(), &mut out.reborrow())?;
            Ok(IsNull::No)
        }
    }

    impl FromSql<JsonDoc, Mysql> for JsonText {
        fn from_sql(value: MysqlValue<'_>) -> deserialize::Result<Self> {
            <String as FromSql<Text, Mysql>>::from_sql(value).map(JsonText)
        }
    }

    impl ToSql<JsonDoc, Mysql> for JsonText {
        fn to_sql<'b>(&'b self, out: &mut Output<'b, '_, Mysql>) -> serialize::Result {
            ToSql::<Text, Mysql>::to_sql(self.0.as_str(), out)
        }
    }
}

#[cfg(feature = "sqlite")]
mod sqlite {
    use super::{Instant, JsonDoc, JsonText};
    use chrono::{DateTime, Utc};
    use diesel::deserialize::{self, FromSql};
    use diesel::serialize::{self, IsNull, Output, ToSql};
    use diesel::sql_types::{BigInt, Text};
    use diesel::sqlite::Sqlite;

    type Value<'a> = <Sqlite as diesel::backend::Backend>::RawValue<'a>;

    impl FromSql<Instant, Sqlite> for DateTime<Utc> {
        fn from_sql(value: Value<'_>) -> deserialize::Result<Self> {
            let micros = <i64 as FromSql<BigInt, Sqlite>>::from_sql(value)?;
            DateTime::from_timestamp_micros(micros)
                .ok_or_else(|| format!("{micros} µs is no point in time").into())
        }
    }

    impl ToSql<Instant, Sqlite> for DateTime<Utc> {
        fn to_sql<'b>(&'b self, out: &mut Output<'b, '_, Sqlite>) -> serialize::Result {
            out.set_value(self.timestamp_micros());
            Ok(IsNull::No)
        }
    }

    impl FromSql<JsonDoc, Sqlite> for JsonText {
        fn from_sql(value: Value<'_>) -> deserialize::Result<Self> {
            <String as FromSql<Text, Sqlite>>::from_sql(value).map(JsonText)
        }
    }

    impl ToSql<JsonDoc, Sqlite> for JsonText {
        fn to_sql<'b>(&'b self, out: &mut Output<'b, '_, Sqlite>) -> serialize::Result {
            ToSql::<Text, Sqlite>::to_sql(self.0.as_str(), out)
        }
    }
}
