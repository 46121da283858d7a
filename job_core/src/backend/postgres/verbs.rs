//! The methods behind the verbs that users call, as PostgreSQL has them; as in `backend/verbs.rs`.

macro_rules! postgres_verbs {
    () => {
        verb! {
            fn enqueue_plain<C: LoadConnection<Backend = Self>>(conn: &mut C, row: &NewRow) -> QueryResult<Job> {
                let enqueue = EnqueuePlain {
                    kind: row.kind,
                    queue: &row.queue,
                    priority: row.priority,
                    max_attempts: row.max_attempts,
                    args: &row.args,
                    wake: notify::due(),
                };
                let (id, created_at) = wait!(enqueue.get_result(conn))?;
                Ok(Job::new(id, created_at, row))
            }
        }
        verb! {
            fn enqueue_many<C: LoadConnection<Backend = Self>>(
                conn: &mut C,
                rows: &[&NewRow],
            ) -> QueryResult<Vec<(usize, i64)>> {
                if let Some(enqueue) = EnqueueAlike::of(rows) {
                    let mut ids: Vec<i64> = wait!(enqueue.load(conn))?;
                    ids.sort_unstable();
                    return Ok(ids.into_iter().enumerate().collect());
                }
                let made: Vec<(i64, i64)> = wait!(EnqueueMany::of(rows).load(conn))?;
                Ok(made
                    .into_iter()
                    .map(|(position, id)| (usize::try_from(position).unwrap_or(usize::MAX), id))
                    .collect())
            }
        }
        verb! {
            fn key_holder<C: LoadConnection<Backend = Self>>(conn: &mut C, key: &str) -> QueryResult<Option<i64>> {
                wait!(KeyHolder { key }.get_result(conn)).optional()
            }
        }
        verb! {
            fn take_key<C: LoadConnection<Backend = Self>>(conn: &mut C, key: &str, job_id: i64) -> QueryResult<bool> {
                Ok(wait!(TakeKey { key, job_id }.execute(conn))? == 1)
            }
        }
        verb! {
            fn delete_facts<C: LoadConnection<Backend = Self>>(conn: &mut C, ids: &[i64]) -> QueryResult<()> {
                wait!(DeleteFacts { ids }.execute(conn)).map(|_| ())
            }
        }
        verb! {
            fn notify<C: LoadConnection<Backend = Self>>(conn: &mut C) -> QueryResult<()> {
                wait!(Notify {}.get_result::<String>(conn)).map(|_| ())
            }
        }
    };
}
