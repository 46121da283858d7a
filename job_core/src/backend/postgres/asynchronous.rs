//! The same statements on diesel_async's connections.

use super::*;
use crate::backend::asynchronous::AsyncJobBackend;
use crate::verbs::asynchronous::{verb, wait};
// The methods are stamped with the names of Diesel's own traits.
use diesel_async::{AsyncConnection as LoadConnection, RunQueryDsl};

impl AsyncJobBackend for Pg {
    const ENQUEUES_IN_ONE_STATEMENT: bool = <Pg as JobBackend>::ENQUEUES_IN_ONE_STATEMENT;
    const MAX_ROWS_PER_STATEMENT: usize = <Pg as JobBackend>::MAX_ROWS_PER_STATEMENT;
    const MAX_BYTES_PER_STATEMENT: usize = <Pg as JobBackend>::MAX_BYTES_PER_STATEMENT;
    const CAN_NOTIFY: bool = <Pg as JobBackend>::CAN_NOTIFY;

    async fn begin_at_read_committed<C: LoadConnection<Backend = Self>>(conn: &mut C) -> QueryResult<()> {
        conn.batch_execute("SET TRANSACTION ISOLATION LEVEL READ COMMITTED")
            .await
    }

    portable_verbs!();
    postgres_verbs!();
}
