use crate::alone::in_transaction;
use crate::row::Columns;
use crate::{LockRow, LockState};
use chrono::{DateTime, Utc};
use diesel::connection::LoadConnection;
use diesel::pg::Pg;
use diesel::prelude::*;

job_db::statement! {
    // A row that an open transaction has changed carries that transaction's number in xmax, and every open transaction
    // holds a lock on its own number. So this finds the holders and locks nothing, which a probe would.
    struct List on Pg {} -> (
        (Text, BigInt, Nullable<Text>, Nullable<job_db::Instant>, Nullable<job_db::Instant>, Bool),
        Bool, Nullable<Text>, Nullable<job_db::Instant>
    );
    "SELECT l.name, l.token, l.owner, l.acquired_at, l.expires_at, coalesce(l.expires_at > clock_timestamp(), false), p.locktype IS NOT NULL,
            concat_ws(' ', nullif(a.application_name, ''), 'pid ' || p.pid, host(a.client_addr) || ':' || a.client_port),
            a.xact_start
     FROM locks l
     LEFT JOIN pg_catalog.pg_locks p ON p.locktype = 'transactionid' AND p.transactionid = l.xmax
       AND p.mode = 'ExclusiveLock' AND p.granted
     LEFT JOIN pg_catalog.pg_stat_activity a ON a.pid = p.pid
     ORDER BY l.name"
}

/// The row; whether a transaction has it, whose, and since when.
type Listed = (Columns, bool, Option<String>, Option<DateTime<Utc>>);

pub(super) fn list<C>(conn: &mut C) -> QueryResult<Vec<LockRow>>
where
    C: LoadConnection<Backend = Pg>,
{
    let load = |conn: &mut C| List {}.load::<Listed>(conn);
    let rows = if job_db::transaction_depth(conn) > 0 {
        load(conn)
    } else {
        in_transaction(conn, load)
    }?;
    Ok(rows.into_iter().map(row).collect())
}

fn row((columns, is_held, holder, since): Listed) -> LockRow {
    let row = LockRow::new(columns, LockState::Free);
    if row.state == LockState::Held || !is_held {
        return row;
    }
    LockRow {
        state: LockState::Held,
        owner: holder,
        acquired_at: since,
        ..row
    }
}
