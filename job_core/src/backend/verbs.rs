//! The methods behind the verbs that users call, once for all databases and both kinds of connection: they are stamped in
//! `JobBackend` and, with the feature `diesel_async`, in its asynchronous twin. See `crate::verbs` for `verb!` and `wait!`.

/// The methods that need only the portable statements.
macro_rules! portable_verbs {
    () => {
        verb! {
            fn free_key<C: LoadConnection<Backend = Self>>(conn: &mut C, job_id: i64) -> QueryResult<()> {
                wait!(FreeKey { job_id }.execute(conn)).map(|_| ())
            }
        }
        verb! {
            fn find<C: LoadConnection<Backend = Self>>(conn: &mut C, id: i64) -> Result<Option<Job>, JobError> {
                let found = wait!(FindJob { id }.get_result(conn)).optional()?;
                found.map(row::job).transpose()
            }
        }
        verb! {
            fn list<C: LoadConnection<Backend = Self>>(
                conn: &mut C,
                filter: &crate::job::JobFilter,
            ) -> Result<Vec<Job>, JobError> {
                let rows: Vec<row::JobRow> = wait!(ListJobs(filter).load(conn))?;
                rows.into_iter().map(row::job).collect()
            }
        }
        verb! {
            fn failures<C: LoadConnection<Backend = Self>>(conn: &mut C, job_id: i64) -> QueryResult<Vec<Failure>> {
                let rows: Vec<row::FailureRow> = wait!(Failures { job_id }.load(conn))?;
                Ok(rows.into_iter().map(row::failure).collect())
            }
        }
        verb! {
            fn count<C: LoadConnection<Backend = Self>>(conn: &mut C) -> QueryResult<Vec<(i32, i64)>> {
                wait!(CountAll {}.load(conn))
            }
        }
        verb! {
            fn count_in<C: LoadConnection<Backend = Self>>(conn: &mut C, queue: &str) -> QueryResult<Vec<(i32, i64)>> {
                wait!(CountIn { queue }.load(conn))
            }
        }
        verb! {
            fn insert_finished<C: LoadConnection<Backend = Self>>(conn: &mut C, end: &Ending<'_>) -> QueryResult<()> {
                let insert = InsertFinished {
                    job_id: end.job_id,
                    status: end.status.code(),
                    attempts: end.attempts,
                    uncharged: end.uncharged,
                    started_at: end.started_at,
                    worker: end.worker,
                    result: end.result,
                    error: end.error,
                };
                wait!(insert.execute(conn)).map(|_| ())
            }
        }
        verb! {
            fn insert_new<C: LoadConnection<Backend = Self>>(
                conn: &mut C,
                job_id: i64,
                attempts: i32,
                uncharged: i32,
            ) -> QueryResult<()> {
                let insert = InsertNew {
                    job_id,
                    attempts,
                    uncharged,
                };
                wait!(insert.execute(conn)).map(|_| ())
            }
        }
        verb! {
            fn delete_state<C: LoadConnection<Backend = Self>>(conn: &mut C, job: &Job) -> QueryResult<usize> {
                let (job_id, attempts, uncharged) = (job.id, job.state.attempts, job.state.uncharged);
                match job.state.status {
                    Status::Scheduled => {
                        let delete = DeleteScheduled {
                            job_id,
                            attempts,
                            uncharged,
                        };
                        wait!(delete.execute(conn))
                    }
                    Status::New => {
                        let delete = DeleteNew {
                            queue: &job.queue,
                            priority: job.priority,
                            job_id,
                            attempts,
                            uncharged,
                        };
                        wait!(delete.execute(conn))
                    }
                    Status::Processing => {
                        let delete = DeleteProcessing {
                            job_id,
                            worker: job.state.worker.unwrap_or_default(),
                            attempts,
                        };
                        wait!(delete.execute(conn))
                    }
                    Status::Completed | Status::Failed | Status::Cancelled => {
                        wait!(DeleteFinished { job_id, attempts }.execute(conn))
                    }
                }
            }
        }
    };
}
