use crate::KeyValue;
use diesel::deserialize;
use diesel::query_builder::{Query, QueryId};
use diesel::sql_types::Untyped;

/// The columns that are read beside the caller's.
pub(crate) const KEY: &str = "gatun_key";
pub(crate) const NUMBER: &str = "gatun_number";

/// What stands before the class of a value that is no such key, where a key's text would be, on a database whose columns hold
/// values of any class. No key begins with it.
pub(crate) const STRANGE: &str = "\0gatun: not the key's class: ";

/// A piece of a statement.
#[derive(Clone, Debug)]
pub(crate) enum Part {
    Text(String),
    Integer(i64),
    String(String),
    Bytes(Vec<u8>),
}

/// SQL that is put together at run time, since table, columns and condition are the caller's.
#[derive(Clone, Debug, Default)]
pub struct Sql {
    pub(crate) parts: Vec<Part>,
    /// Whether the same text comes again and again, so that Diesel may keep it prepared.
    pub(crate) comes_again: bool,
}

impl Sql {
    pub(crate) fn new(text: impl Into<String>) -> Self {
        Sql {
            parts: vec![Part::Text(text.into())],
            comes_again: false,
        }
    }

    pub(crate) fn text(&mut self, text: impl Into<String>) -> &mut Self {
        self.parts.push(Part::Text(text.into()));
        self
    }

    pub(crate) fn bind(&mut self, part: Part) -> &mut Self {
        self.parts.push(part);
        self
    }
}

impl From<&KeyValue> for Part {
    fn from(key: &KeyValue) -> Self {
        match key {
            KeyValue::Integer(number) => Part::Integer(*number),
            KeyValue::Uuid(number) => Part::Bytes(number.to_be_bytes().into()),
            KeyValue::Text(text) => Part::String(text.clone()),
        }
    }
}

impl QueryId for Sql {
    type QueryId = ();
    const HAS_STATIC_QUERY_ID: bool = false;
}

impl Query for Sql {
    type SqlType = Untyped;
}

impl<Conn> diesel::RunQueryDsl<Conn> for Sql {}

/// What the database gives as a key: `None` for NULL, an error for what is no text.
pub(crate) type KeyText = Result<Option<String>, String>;

/// A row with its key. What Diesel cannot read of the row is an error of that row alone.
#[derive(Debug)]
pub struct Keyed<T> {
    pub(crate) key: KeyText,
    pub(crate) row: deserialize::Result<T>,
}

/// A key, with the number of its partition.
#[derive(Debug)]
pub struct Numbered {
    pub(crate) key: KeyText,
    pub(crate) number: i64,
}

/// What stands once, stamped for each database, since Diesel cannot say it for all at once.
macro_rules! stamp {
    ($db:ty) => {
        const _: () = {
            use crate::sql::{KEY, KeyText, Keyed, NUMBER, Numbered, Part, Sql};
            use crate::work::message;
            use diesel::deserialize::{QueryableByName, Result};
            use diesel::query_builder::{AstPass, QueryFragment};
            use diesel::row::NamedRow;
            use diesel::sql_types::{BigInt, Binary, Nullable, Text};
            use std::panic::{AssertUnwindSafe, catch_unwind};

            impl QueryFragment<$db> for Sql {
                fn walk_ast<'b>(&'b self, mut out: AstPass<'_, 'b, $db>) -> diesel::QueryResult<()> {
                    if !self.comes_again {
                        out.unsafe_to_cache_prepared();
                    }
                    for part in &self.parts {
                        match part {
                            Part::Text(text) => out.push_sql(text),
                            Part::Integer(number) => out.push_bind_param::<BigInt, i64>(number)?,
                            Part::String(text) => out.push_bind_param::<Text, String>(text)?,
                            Part::Bytes(bytes) => out.push_bind_param::<Binary, Vec<u8>>(bytes)?,
                        }
                    }
                    Ok(())
                }
            }

            fn key<'a>(row: &impl NamedRow<'a, $db>) -> KeyText {
                NamedRow::get::<Nullable<Text>, Option<String>>(row, KEY).map_err(|error| error.to_string())
            }

            impl<T: QueryableByName<$db>> QueryableByName<$db> for Keyed<T> {
                fn build<'a>(row: &impl NamedRow<'a, $db>) -> Result<Self> {
                    Ok(Keyed {
                        key: key(row),
                        // What the caller's types do is the caller's, a panic too.
                        row: catch_unwind(AssertUnwindSafe(|| T::build(row)))
                            .unwrap_or_else(|panic| Err(message(panic.as_ref()).into())),
                    })
                }
            }

            impl QueryableByName<$db> for Numbered {
                fn build<'a>(row: &impl NamedRow<'a, $db>) -> Result<Self> {
                    Ok(Numbered {
                        key: key(row),
                        // NULL where the key is.
                        number: NamedRow::get::<Nullable<BigInt>, Option<i64>>(row, NUMBER)?.unwrap_or(0),
                    })
                }
            }
        };
    };
}

/// The methods of the seam that run an [`Sql`], for each database.
macro_rules! runners {
    () => {
        fn rows<C, T>(conn: &mut C, sql: crate::sql::Sql) -> diesel::QueryResult<Vec<crate::sql::Keyed<T>>>
        where
            C: diesel::connection::LoadConnection<Backend = Self>,
            T: diesel::deserialize::QueryableByName<Self> + 'static,
        {
            diesel::RunQueryDsl::load(sql, conn)
        }

        fn numbered<C>(conn: &mut C, sql: crate::sql::Sql) -> diesel::QueryResult<Vec<crate::sql::Numbered>>
        where
            C: diesel::connection::LoadConnection<Backend = Self>,
        {
            diesel::RunQueryDsl::load(sql, conn)
        }
    };
}

#[allow(unused_imports)]
pub(crate) use {runners, stamp};
