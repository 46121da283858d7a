//! What is the same text for all three databases stands here once, and is stamped for each.

/// The statements, as query objects on one backend.
macro_rules! portable_statements {
    ($db:ty) => {
        use crate::backend::row::{JOB_SELECT, job_sql::JobSql};
        use crate::verbs::blocking::{verb, wait};
        use job_db::{Instant, JsonDoc, JsonText, statement};

        const NOW: &str = <$db as job_db::Database>::NOW_SQL;
        const AFTER: &str = <$db as job_db::Database>::AFTER_SQL.0;
        const MICROS: &str = <$db as job_db::Database>::AFTER_SQL.1;

        statement! {
            struct FindJob on $db { id: i64 => BigInt } -> JobSql;
            {JOB_SELECT} "WHERE j.id = " id
        }
        statement! {
            struct Failures on $db { job_id: i64 => BigInt } -> (Integer, Instant, Text);
            "SELECT attempt, failed_at, error FROM job_failures WHERE job_id = " job_id " ORDER BY attempt"
        }
        statement! {
            struct CountAll on $db {} -> (Integer, BigInt);
            "SELECT 0, COUNT(*) FROM jobs_scheduled UNION ALL SELECT 1, COUNT(*) FROM jobs_new
             UNION ALL SELECT 2, COUNT(*) FROM jobs_processing
             UNION ALL SELECT status, COUNT(*) FROM jobs_finished GROUP BY status"
        }
        statement! {
            struct CountIn<'a> on $db { queue: &'a str => Text } -> (Integer, BigInt);
            "SELECT 0, COUNT(*) FROM jobs_scheduled s JOIN jobs j ON j.id = s.job_id WHERE j.queue = " queue "
             UNION ALL SELECT 1, COUNT(*) FROM jobs_new WHERE queue = " queue "
             UNION ALL SELECT 2, COUNT(*) FROM jobs_processing p JOIN jobs j ON j.id = p.job_id WHERE j.queue = " queue "
             UNION ALL SELECT f.status, COUNT(*) FROM jobs_finished f JOIN jobs j ON j.id = f.job_id
                       WHERE j.queue = " queue " GROUP BY f.status"
        }
        statement! {
            struct FreeKey on $db { job_id: i64 => BigInt } -> ();
            "DELETE FROM unique_keys WHERE job_id = " job_id
        }
        statement! {
            struct DeleteProcessing on $db {
                job_id: i64 => BigInt, worker: i64 => BigInt, attempts: i32 => Integer,
            } -> ();
            "DELETE FROM jobs_processing WHERE job_id = " job_id " AND worker = " worker " AND attempts = " attempts
        }
        statement! {
            struct IsProcessing on $db {
                job_id: i64 => BigInt, worker: i64 => BigInt, attempts: i32 => Integer,
            } -> BigInt;
            "SELECT COUNT(*) FROM jobs_processing
             WHERE job_id = " job_id " AND worker = " worker " AND attempts = " attempts
        }
        statement! {
            struct WasCompletedBy on $db {
                job_id: i64 => BigInt, worker: i64 => BigInt, attempts: i32 => Integer,
            } -> BigInt;
            "SELECT COUNT(*) FROM jobs_finished WHERE status = 3
             AND job_id = " job_id " AND worker = " worker " AND attempts = " attempts
        }
        statement! {
            struct InsertFailure<'a> on $db {
                job_id: i64 => BigInt, attempt: i32 => Integer, error: &'a str => Text,
            } -> ();
            "INSERT INTO job_failures (job_id, attempt, failed_at, error)
             VALUES (" job_id ", " attempt ", " {NOW} ", " error ")"
        }
        statement! {
            struct InsertFinished<'a> on $db {
                job_id: i64 => BigInt, status: i16 => SmallInt, attempts: i32 => Integer, uncharged: i32 => Integer,
                started_at: Option<DateTime<Utc>> => Nullable<Instant>, worker: Option<i64> => Nullable<BigInt>,
                result: Option<&'a JsonText> => Nullable<JsonDoc>, error: Option<&'a str> => Nullable<Text>,
            } -> ();
            "INSERT INTO jobs_finished
                 (job_id, status, attempts, uncharged, started_at, finished_at, worker, result, error)
             VALUES (" job_id ", " status ", " attempts ", " uncharged ", " started_at ", " {NOW} ", " worker ", "
             result ", " error ")"
        }
        statement! {
            struct InsertScheduledIn on $db {
                job_id: i64 => BigInt, attempts: i32 => Integer, uncharged: i32 => Integer, micros: i64 => BigInt,
            } -> ();
            "INSERT INTO jobs_scheduled (run_at, job_id, attempts, uncharged)
             VALUES (" {AFTER} micros {MICROS} ", " job_id ", " attempts ", " uncharged ")"
        }
        statement! {
            struct InsertScheduledAt on $db {
                job_id: i64 => BigInt, attempts: i32 => Integer, uncharged: i32 => Integer,
                run_at: DateTime<Utc> => Instant,
            } -> ();
            "INSERT INTO jobs_scheduled (run_at, job_id, attempts, uncharged)
             VALUES (" run_at ", " job_id ", " attempts ", " uncharged ")"
        }
        statement! {
            struct InsertNew on $db {
                job_id: i64 => BigInt, attempts: i32 => Integer, uncharged: i32 => Integer,
            } -> ();
            "INSERT INTO jobs_new (queue, priority, job_id, kind, attempts, uncharged)
             SELECT queue, priority, id, kind, " attempts ", " uncharged " FROM jobs WHERE id = " job_id
        }
        statement! {
            struct DeleteScheduled on $db { job_id: i64 => BigInt, attempts: i32 => Integer, uncharged: i32 => Integer } -> ();
            "DELETE FROM jobs_scheduled
             WHERE job_id = " job_id " AND attempts = " attempts " AND uncharged = " uncharged
        }
        statement! {
            struct DeleteNew<'a> on $db {
                queue: &'a str => Text, priority: i32 => Integer, job_id: i64 => BigInt,
                attempts: i32 => Integer, uncharged: i32 => Integer,
            } -> ();
            "DELETE FROM jobs_new WHERE queue = " queue " AND priority = " priority " AND job_id = " job_id "
             AND attempts = " attempts " AND uncharged = " uncharged
        }
        statement! {
            struct DeleteFinished on $db { job_id: i64 => BigInt, attempts: i32 => Integer } -> ();
            "DELETE FROM jobs_finished WHERE job_id = " job_id " AND attempts = " attempts
        }
        statement! {
            struct InsertWorker<'a> on $db {
                id: i64 => BigInt, host: &'a str => Text, pid: i64 => BigInt,
                kinds: JsonText => JsonDoc, queues: JsonText => JsonDoc,
            } -> ();
            "INSERT INTO workers (id, host, pid, started_at, beat_at, kinds, queues)
             VALUES (" id ", " host ", " pid ", " {NOW} ", " {NOW} ", " kinds ", " queues ")"
        }
        statement! {
            struct Beat on $db { id: i64 => BigInt } -> ();
            "UPDATE workers SET beat_at = " {NOW} " WHERE id = " id
        }
        statement! {
            struct DeleteWorker on $db { id: i64 => BigInt } -> ();
            "DELETE FROM workers WHERE id = " id
        }
        statement! {
            struct DeleteSilentWorker on $db { id: i64 => BigInt, micros: i64 => BigInt } -> ();
            "DELETE FROM workers WHERE id = " id " AND beat_at < " {AFTER} micros {MICROS}
        }
        statement! {
            struct SilentWorkers on $db { micros: i64 => BigInt } -> BigInt;
            "SELECT id FROM workers WHERE beat_at < " {AFTER} micros {MICROS}
        }
        statement! {
            struct Workers on $db {} -> (BigInt, Text, BigInt, Instant, Instant, JsonDoc, JsonDoc);
            "SELECT id, host, pid, started_at, beat_at, kinds, queues FROM workers ORDER BY started_at, id"
        }
        statement! {
            struct NextRunAt on $db {} -> (Nullable<Instant>, Instant);
            "SELECT MIN(run_at), " {NOW} " FROM jobs_scheduled"
        }
        statement! {
            struct LookForChores on $db { micros: i64 => BigInt } -> (Nullable<Instant>, Instant, Integer, Integer);
            "SELECT MIN(run_at), " {NOW} ",
                    CASE WHEN EXISTS (SELECT 1 FROM workers WHERE beat_at < " {AFTER} micros {MICROS} ")
                         THEN 1 ELSE 0 END,
                    CASE WHEN EXISTS (SELECT 1 FROM jobs_processing p
                                      WHERE NOT EXISTS (SELECT 1 FROM workers w WHERE w.id = p.worker))
                         THEN 1 ELSE 0 END
             FROM jobs_scheduled"
        }
        statement! {
            struct LastJobId on $db {} -> BigInt;
            "SELECT COALESCE(MAX(id), 0) FROM jobs"
        }
        statement! {
            struct Orphans on $db { limit: i64 => BigInt }
                -> (BigInt, BigInt, Integer, Integer, Instant, Integer, Nullable<Text>);
            "SELECT p.job_id, p.worker, p.attempts, p.uncharged, p.started_at, j.max_attempts, j.unique_key
             FROM jobs_processing p JOIN jobs j ON j.id = p.job_id
             WHERE NOT EXISTS (SELECT 1 FROM workers w WHERE w.id = p.worker) ORDER BY p.job_id LIMIT " limit {LOCK_ORPHANS}
        }
        statement! {
            struct HeldBy on $db { worker: i64 => BigInt }
                -> (BigInt, BigInt, Integer, Integer, Instant, Integer, Nullable<Text>);
            "SELECT p.job_id, p.worker, p.attempts, p.uncharged, p.started_at, j.max_attempts, j.unique_key
             FROM jobs_processing p JOIN jobs j ON j.id = p.job_id WHERE p.worker = " worker
        }
        statement! {
            struct OldFinished on $db {
                status: i16 => SmallInt, micros: i64 => BigInt, after: i64 => BigInt, limit: i64 => BigInt,
            } -> (BigInt, Integer);
            "SELECT job_id, CASE WHEN finished_at < " {AFTER} micros {MICROS} " THEN 1 ELSE 0 END
             FROM jobs_finished WHERE status = " status " AND job_id > " after " ORDER BY job_id LIMIT " limit
        }

        /// A list's text depends on the filter, so Diesel keys the prepared statement by its text.
        struct ListJobs<'a>(&'a crate::job::JobFilter);

        impl diesel::query_builder::QueryId for ListJobs<'_> {
            type QueryId = ();
            const HAS_STATIC_QUERY_ID: bool = false;
        }
        impl diesel::query_builder::Query for ListJobs<'_> {
            type SqlType = JobSql;
        }
        impl<Conn> diesel::RunQueryDsl<Conn> for ListJobs<'_> {}
        impl diesel::query_builder::QueryFragment<$db> for ListJobs<'_> {
            fn walk_ast<'b>(
                &'b self,
                mut out: diesel::query_builder::AstPass<'_, 'b, $db>,
            ) -> QueryResult<()> {
                out.push_sql(JOB_SELECT);
                out.push_sql("WHERE j.id < ");
                out.push_bind_param::<BigInt, _>(&self.0.before)?;
                if let Some(status) = self.0.status {
                    out.push_sql(match status {
                        Status::Scheduled => " AND s.job_id IS NOT NULL",
                        Status::New => " AND n.job_id IS NOT NULL",
                        Status::Processing => " AND p.job_id IS NOT NULL",
                        Status::Completed => " AND f.status = 3",
                        Status::Failed => " AND f.status = 4",
                        Status::Cancelled => " AND f.status = 5",
                    });
                }
                if let Some(queue) = &self.0.queue {
                    out.push_sql(" AND j.queue = ");
                    out.push_bind_param::<Text, _>(queue)?;
                }
                if let Some(kind) = &self.0.kind {
                    out.push_sql(" AND j.kind = ");
                    out.push_bind_param::<Text, _>(kind)?;
                }
                out.push_sql(" ORDER BY j.id DESC LIMIT ");
                out.push_bind_param::<BigInt, _>(&self.0.limit)
            }
        }
    };
}

/// The methods of `JobBackend` that need only those statements; those behind the verbs that users call stand in `verbs.rs`.
macro_rules! portable_methods {
    () => {
        portable_verbs!();

        fn was_completed_by<C: LoadConnection<Backend = Self>>(
            conn: &mut C,
            ticket: &Ticket,
        ) -> QueryResult<bool> {
            let found: i64 = WasCompletedBy {
                job_id: ticket.job_id,
                worker: ticket.worker,
                attempts: ticket.attempts,
            }
            .get_result(conn)?;
            Ok(found == 1)
        }

        fn is_processing<C: LoadConnection<Backend = Self>>(
            conn: &mut C,
            ticket: &Ticket,
        ) -> QueryResult<bool> {
            let found: i64 = IsProcessing {
                job_id: ticket.job_id,
                worker: ticket.worker,
                attempts: ticket.attempts,
            }
            .get_result(conn)?;
            Ok(found == 1)
        }

        fn delete_processing<C: LoadConnection<Backend = Self>>(
            conn: &mut C,
            ticket: &Ticket,
        ) -> QueryResult<usize> {
            DeleteProcessing {
                job_id: ticket.job_id,
                worker: ticket.worker,
                attempts: ticket.attempts,
            }
            .execute(conn)
        }

        fn insert_failure<C: LoadConnection<Backend = Self>>(
            conn: &mut C,
            job_id: i64,
            attempt: i32,
            error: &str,
        ) -> QueryResult<()> {
            InsertFailure {
                job_id,
                attempt,
                error,
            }
            .execute(conn)
            .map(|_| ())
        }

        fn insert_scheduled<C: LoadConnection<Backend = Self>>(
            conn: &mut C,
            job_id: i64,
            attempts: i32,
            uncharged: i32,
            when: When,
        ) -> QueryResult<()> {
            match when {
                When::In(delay) => InsertScheduledIn {
                    job_id,
                    attempts,
                    uncharged,
                    micros: micros(delay),
                }
                .execute(conn),
                When::At(time) => InsertScheduledAt {
                    job_id,
                    attempts,
                    uncharged,
                    run_at: limits::clamp_run_at(time),
                }
                .execute(conn),
            }
            .map(|_| ())
        }

        fn insert_worker<C: LoadConnection<Backend = Self>>(
            conn: &mut C,
            row: &WorkerRow,
        ) -> QueryResult<()> {
            let json = |names: &[String]| JsonText(serde_json::json!(names).to_string());
            InsertWorker {
                id: row.id,
                host: &row.host,
                pid: row.pid,
                kinds: json(&row.kinds),
                queues: json(&row.queues),
            }
            .execute(conn)
            .map(|_| ())
        }

        fn beat<C: LoadConnection<Backend = Self>>(conn: &mut C, id: i64) -> QueryResult<usize> {
            Beat { id }.execute(conn)
        }

        fn delete_worker<C: LoadConnection<Backend = Self>>(conn: &mut C, id: i64) -> QueryResult<usize> {
            DeleteWorker { id }.execute(conn)
        }

        fn delete_silent_worker<C: LoadConnection<Backend = Self>>(
            conn: &mut C,
            id: i64,
            micros: i64,
        ) -> QueryResult<usize> {
            DeleteSilentWorker {
                id,
                micros: -micros,
            }
            .execute(conn)
        }

        fn silent_workers<C: LoadConnection<Backend = Self>>(
            conn: &mut C,
            micros: i64,
        ) -> QueryResult<Vec<i64>> {
            SilentWorkers { micros: -micros }.load(conn)
        }

        fn workers<C: LoadConnection<Backend = Self>>(conn: &mut C) -> QueryResult<Vec<WorkerRow>> {
            Ok(Workers {}
                .load(conn)?
                .into_iter()
                .map(row::worker)
                .collect())
        }

        fn next_run_at<C: LoadConnection<Backend = Self>>(
            conn: &mut C,
        ) -> QueryResult<(Option<DateTime<Utc>>, DateTime<Utc>)> {
            NextRunAt {}.get_result(conn)
        }

        fn chores<C: LoadConnection<Backend = Self>>(
            conn: &mut C,
            micros: i64,
        ) -> QueryResult<crate::housekeeping::Chores> {
            LookForChores { micros: -micros }
                .get_result(conn)
                .map(row::chores)
        }

        fn orphans<C: LoadConnection<Backend = Self>>(conn: &mut C, limit: i64) -> QueryResult<Vec<Ticket>> {
            Ok(Orphans { limit }
                .load(conn)?
                .into_iter()
                .map(row::ticket)
                .collect())
        }

        fn last_id<C: LoadConnection<Backend = Self>>(conn: &mut C) -> QueryResult<i64> {
            LastJobId {}.get_result(conn)
        }

        fn held_by<C: LoadConnection<Backend = Self>>(conn: &mut C, worker: i64) -> QueryResult<Vec<Ticket>> {
            Ok(HeldBy { worker }
                .load(conn)?
                .into_iter()
                .map(row::ticket)
                .collect())
        }

        fn old_finished<C: LoadConnection<Backend = Self>>(
            conn: &mut C,
            status: Status,
            micros: i64,
            after: i64,
            limit: i64,
        ) -> QueryResult<Vec<(i64, bool)>> {
            let rows: Vec<(i64, i32)> = OldFinished {
                status: status.code(),
                micros: -micros,
                after,
                limit,
            }
            .load(conn)?;
            Ok(rows.into_iter().map(|(id, old)| (id, old == 1)).collect())
        }
    };
}
