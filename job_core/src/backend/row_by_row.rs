//! Multi-row INSERTs, for the databases without arrays. Their text grows with the rows, so they are not kept prepared.

use crate::new_job::NewRow;
use diesel::backend::Backend;
use diesel::query_builder::{AstPass, QueryFragment, QueryId};
use diesel::serialize::ToSql;
use diesel::sql_types::{BigInt, Integer, Nullable, Text};
use diesel::{QueryResult, RunQueryDsl};
use job_db::{Database, JsonDoc, JsonText};

/// Rows for `jobs`.
pub(super) struct InsertJobs<'a>(pub(super) &'a [&'a NewRow]);

/// Rows for `jobs_new`, with their ids.
pub(super) struct InsertAllNew<'a>(pub(super) &'a [(i64, &'a NewRow)]);

macro_rules! never_cached {
    ($name:ident) => {
        impl QueryId for $name<'_> {
            type QueryId = ();
            const HAS_STATIC_QUERY_ID: bool = false;
        }
        impl<Conn> RunQueryDsl<Conn> for $name<'_> {}
    };
}
never_cached!(InsertJobs);
never_cached!(InsertAllNew);

impl<DB> QueryFragment<DB> for InsertJobs<'_>
where
    DB: Backend + Database + diesel::sql_types::HasSqlType<JsonDoc>,
    str: ToSql<Text, DB>,
    String: ToSql<Text, DB>,
    i32: ToSql<Integer, DB>,
    JsonText: ToSql<JsonDoc, DB>,
    Option<String>: ToSql<Nullable<Text>, DB>,
{
    fn walk_ast<'b>(&'b self, mut out: AstPass<'_, 'b, DB>) -> QueryResult<()> {
        out.unsafe_to_cache_prepared();
        out.push_sql(
            "INSERT INTO jobs (kind, queue, priority, max_attempts, args, unique_key, created_at) VALUES ",
        );
        for (position, row) in self.0.iter().enumerate() {
            out.push_sql(if position == 0 { "(" } else { ", (" });
            out.push_bind_param::<Text, str>(row.kind)?;
            out.push_sql(", ");
            out.push_bind_param::<Text, String>(&row.queue)?;
            out.push_sql(", ");
            out.push_bind_param::<Integer, i32>(&row.priority)?;
            out.push_sql(", ");
            out.push_bind_param::<Integer, i32>(&row.max_attempts)?;
            out.push_sql(", ");
            out.push_bind_param::<JsonDoc, JsonText>(&row.args)?;
            out.push_sql(", ");
            out.push_bind_param::<Nullable<Text>, Option<String>>(&row.unique_key)?;
            out.push_sql(", ");
            out.push_sql(DB::NOW_SQL);
            out.push_sql(")");
        }
        Ok(())
    }
}

impl<DB> QueryFragment<DB> for InsertAllNew<'_>
where
    DB: Backend + Database,
    str: ToSql<Text, DB>,
    String: ToSql<Text, DB>,
    i32: ToSql<Integer, DB>,
    i64: ToSql<BigInt, DB>,
{
    fn walk_ast<'b>(&'b self, mut out: AstPass<'_, 'b, DB>) -> QueryResult<()> {
        out.unsafe_to_cache_prepared();
        out.push_sql("INSERT INTO jobs_new (queue, priority, job_id, kind, attempts, uncharged) VALUES ");
        for (position, (id, row)) in self.0.iter().enumerate() {
            out.push_sql(if position == 0 { "(" } else { ", (" });
            out.push_bind_param::<Text, String>(&row.queue)?;
            out.push_sql(", ");
            out.push_bind_param::<Integer, i32>(&row.priority)?;
            out.push_sql(", ");
            out.push_bind_param::<BigInt, i64>(id)?;
            out.push_sql(", ");
            out.push_bind_param::<Text, str>(row.kind)?;
            out.push_sql(", 0, 0)");
        }
        Ok(())
    }
}

/// The statements that MySQL and SQLite share.
macro_rules! row_by_row_statements {
    ($db:ty, $order:literal, $lock:literal) => {
        statement! {
            struct NextPriority<'a> on $db { queue: &'a str => Text, after: i64 => BigInt } -> Nullable<Integer>;
            "SELECT MIN(priority) FROM jobs_new WHERE queue = " queue " AND priority > " after
        }
        statement! {
            // A time that has passed is no schedule: nothing is inserted then.
            struct InsertScheduledIfLater on $db { job_id: i64 => BigInt, run_at: DateTime<Utc> => Instant } -> ();
            "INSERT INTO jobs_scheduled (run_at, job_id, attempts, uncharged)
             SELECT " run_at ", id, 0, 0 FROM jobs WHERE id = " job_id " AND " run_at " > " {NOW}
        }

        statement! {
            struct CreatedAt on $db { id: i64 => BigInt } -> Instant;
            "SELECT created_at FROM jobs WHERE id = " id
        }

        statement! {
            struct DeleteJob on $db { id: i64 => BigInt } -> ();
            "DELETE FROM jobs WHERE id = " id
        }

        /// The jobs that a claim may have. The text depends on the number of kinds, so Diesel keys the prepared
        /// statement by its text.
        struct Claimable<'a>(&'a ClaimRequest<'a>);

        impl diesel::query_builder::QueryId for Claimable<'_> {
            type QueryId = ();
            const HAS_STATIC_QUERY_ID: bool = false;
        }
        impl diesel::query_builder::Query for Claimable<'_> {
            type SqlType = (BigInt, Integer, Integer);
        }
        impl<Conn> diesel::RunQueryDsl<Conn> for Claimable<'_> {}
        impl diesel::query_builder::QueryFragment<$db> for Claimable<'_> {
            fn walk_ast<'b>(
                &'b self,
                mut out: diesel::query_builder::AstPass<'_, 'b, $db>,
            ) -> QueryResult<()> {
                let request = self.0;
                out.push_sql("SELECT job_id, attempts, uncharged FROM jobs_new WHERE queue = ");
                out.push_bind_param::<Text, str>(request.queue)?;
                out.push_sql(" AND priority = ");
                out.push_bind_param::<Integer, i32>(&request.priority)?;
                out.push_sql(" AND job_id > ");
                out.push_bind_param::<BigInt, i64>(&request.after)?;
                out.push_sql(" AND kind IN (''");
                for kind in request.kinds {
                    out.push_sql(", ");
                    out.push_bind_param::<Text, String>(kind)?;
                }
                out.push_sql(") AND EXISTS (SELECT 1 FROM workers WHERE id = ");
                out.push_bind_param::<BigInt, i64>(&request.worker)?;
                out.push_sql(concat!(") ", $order));
                out.push_bind_param::<BigInt, i64>(&request.limit)?;
                out.push_sql($lock);
                Ok(())
            }
        }
    };
}

/// The methods of `JobBackend` that MySQL and SQLite share.
macro_rules! row_by_row_methods {
    () => {
        fn enqueue_plain<C: LoadConnection<Backend = Self>>(conn: &mut C, row: &NewRow) -> QueryResult<Job> {
            // A transaction, or a savepoint in the caller's: half a job must not stay behind an error.
            let insert = |conn: &mut C| {
                let (_, id) = Self::enqueue_many(conn, &[row])?[0];
                let created_at = CreatedAt { id }.get_result(conn)?;
                QueryResult::Ok((id, created_at))
            };
            let (id, created_at) = if job_db::transaction_depth(conn) > 0 {
                job_db::savepoint(conn, insert)?
            } else {
                Self::write_transaction(conn, insert)?
            };
            Ok(Job::new(id, created_at, row))
        }

        fn enqueue_many<C: LoadConnection<Backend = Self>>(
            conn: &mut C,
            rows: &[&NewRow],
        ) -> QueryResult<Vec<(usize, i64)>> {
            let mut made = Vec::with_capacity(rows.len());
            let (plain, mut special): (Vec<_>, Vec<_>) =
                (0..rows.len()).partition(|&at| rows[at].unique_key.is_none() && rows[at].when.is_none());
            if !plain.is_empty() {
                let plain_rows: Vec<&NewRow> = plain.iter().map(|&at| rows[at]).collect();
                InsertJobs(&plain_rows).execute(conn)?;
                let ids = ids_of_last_insert(conn, plain_rows.len())?;
                let pairs: Vec<(i64, &NewRow)> = ids.iter().copied().zip(plain_rows).collect();
                InsertAllNew(&pairs).execute(conn)?;
                made.extend(plain.into_iter().zip(ids));
            }
            // The order of the keys keeps two bulks with the same keys from waiting for each other.
            special.sort_by_key(|&at| (&rows[at].unique_key, at));
            for at in special {
                if let Some(id) = enqueue_special(conn, rows[at])? {
                    made.push((at, id));
                }
            }
            Ok(made)
        }

        fn key_holder<C: LoadConnection<Backend = Self>>(
            conn: &mut C,
            key: &str,
        ) -> QueryResult<Option<i64>> {
            KeyHolder { key }.get_result(conn).optional()
        }

        fn lanes<C: LoadConnection<Backend = Self>>(
            conn: &mut C,
            queues: &[String],
        ) -> QueryResult<Vec<(String, i32)>> {
            let mut lanes = Vec::new();
            for queue in queues {
                let mut after = i64::MIN;
                while let Some(priority) = (NextPriority { queue, after }).get_result::<Option<i32>>(conn)? {
                    lanes.push((queue.clone(), priority));
                    after = priority.into();
                }
            }
            Ok(lanes)
        }
    };
}

/// Enqueues a job with a key or a time; `None` where its key is taken.
macro_rules! row_by_row_functions {
    ($db:ty) => {
        fn enqueue_special<C: LoadConnection<Backend = $db>>(
            conn: &mut C,
            row: &NewRow,
        ) -> QueryResult<Option<i64>> {
            InsertJobs(&[row]).execute(conn)?;
            let id = ids_of_last_insert(conn, 1)?[0];
            if let Some(key) = &row.unique_key
                && !<$db>::take_key(conn, key, id)?
            {
                // Only this row: looking for failures, of which there are none, would lock the place where they would be.
                DeleteJob { id }.execute(conn)?;
                return Ok(None);
            }
            match row.when {
                Some(When::In(delay)) if micros(delay) > 0 => {
                    <$db>::insert_scheduled(conn, id, 0, 0, When::In(delay))?;
                }
                Some(When::At(run_at))
                    if (InsertScheduledIfLater { job_id: id, run_at }).execute(conn)? == 1 => {}
                _ => <$db>::insert_new(conn, id, 0, 0)?,
            }
            Ok(Some(id))
        }
    };
}
