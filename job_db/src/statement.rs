/// Makes a query object: a struct whose fields are the binds of one SQL text. Diesel prepares it once per connection,
/// which it does not do for its own UPDATE, its upserts or `sql_query`.
///
/// ```
/// # #[cfg(feature = "sqlite")] {
/// use diesel::prelude::*;
/// use diesel::sql_types::BigInt;
/// job_db::statement! {
///     /// Adds two numbers.
///     struct Add on diesel::sqlite::Sqlite { left: i64 => BigInt, right: i64 => BigInt } -> BigInt;
///     "SELECT " left " + " right
/// }
/// let conn = &mut SqliteConnection::establish(":memory:").unwrap();
/// let sum: i64 = Add { left: 20, right: 22 }.get_result(conn).unwrap();
/// assert_eq!(sum, 42);
/// # }
/// ```
///
/// A struct that borrows names one lifetime: `struct Find<'a> on Sqlite { name: &'a str => Text } -> …`. The type behind
/// the arrow is the SQL type of a row (a tuple for several columns), or `()` for a statement that gives no rows.
/// In the text, string literals are SQL, names are binds, and `{ expression }` is SQL from a constant.
#[macro_export]
macro_rules! statement {
    (
        $(#[$meta:meta])*
        $vis:vis struct $name:ident $(<$lt:lifetime>)? on $db:ty {
            $($field:ident : $rust:ty => $sql:ty),* $(,)?
        } -> $row:ty;
        $($part:tt)+
    ) => {
        $(#[$meta])*
        #[derive(Debug)]
        $vis struct $name $(<$lt>)? {
            $($vis $field: $rust,)*
        }
        const _: () = {
            use $crate::diesel;
            use diesel::query_builder::{AstPass, Query, QueryFragment, QueryId};
            #[allow(unused_imports)]
            use diesel::sql_types::*;

            #[allow(unreachable_pub)]
            pub struct Id;
            impl $(<$lt>)? QueryId for $name $(<$lt>)? {
                type QueryId = Id;
                const HAS_STATIC_QUERY_ID: bool = true;
            }
            impl $(<$lt>)? Query for $name $(<$lt>)? {
                type SqlType = $row;
            }
            impl<$($lt,)? Conn> diesel::RunQueryDsl<Conn> for $name $(<$lt>)? {}
            impl $(<$lt>)? QueryFragment<$db> for $name $(<$lt>)? {
                fn walk_ast<'b>(&'b self, mut out: AstPass<'_, 'b, $db>) -> diesel::QueryResult<()> {
                    $(let $field = &self.$field;)*
                    // A bind may stand in the text several times, or only in some of its places.
                    $(let _ = $field;)*
                    $crate::statement!(@parts out { $($field: $rust => $sql),* } $($part)+);
                    Ok(())
                }
            }
        };
    };
    (@parts $out:ident $fields:tt) => {};
    (@parts $out:ident $fields:tt $lit:literal $($rest:tt)*) => {
        $out.push_sql($lit);
        $crate::statement!(@parts $out $fields $($rest)*);
    };
    (@parts $out:ident $fields:tt { $text:expr } $($rest:tt)*) => {
        $out.push_sql($text);
        $crate::statement!(@parts $out $fields $($rest)*);
    };
    (@parts $out:ident $fields:tt $bind:ident $($rest:tt)*) => {
        $crate::statement!(@bind $out $bind $fields);
        $crate::statement!(@parts $out $fields $($rest)*);
    };
    // Finds the bind's SQL type among the fields: every field is compared by name through a local macro.
    (@bind $out:ident $bind:ident { $($field:ident : $rust:ty => $sql:ty),* }) => {{
        macro_rules! push {
            $(($field) => { $out.push_bind_param::<$sql, $rust>($field)? };)*
        }
        push!($bind)
    }};
}
