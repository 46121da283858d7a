use crate::row::Columns;
use crate::{LockRow, LockState};
use diesel::connection::LoadConnection;
use diesel::mysql::Mysql;
use diesel::prelude::*;

job_db::statement! {
    struct List on Mysql {} -> (
        Binary, BigInt, Nullable<Text>, Nullable<job_db::Instant>, Nullable<job_db::Instant>, Bool
    );
    "SELECT name, token, owner, acquired_at, expires_at, COALESCE(expires_at > UTC_TIMESTAMP(6), FALSE)
     FROM locks ORDER BY name"
}

pub(super) fn list<C>(conn: &mut C) -> QueryResult<Vec<LockRow>>
where
    C: LoadConnection<Backend = Mysql>,
{
    if job_db::transaction_depth(conn) > 0 {
        // The level of an open transaction cannot be changed.
        return read(conn, LockState::Unknown);
    }
    // A holder's row is not committed. A dirty read shows it, and it locks nothing, which a probe would. In this
    // order: what was dirty first and is not committed after it, was held in between.
    conn.batch_execute("SET TRANSACTION ISOLATION LEVEL READ UNCOMMITTED")?;
    let dirty = read(conn, LockState::Held)?;
    conn.batch_execute("SET TRANSACTION ISOLATION LEVEL READ COMMITTED")?;
    let committed = read(conn, LockState::Free)?;
    Ok(committed
        .into_iter()
        .map(|row| {
            let holder = dirty
                .iter()
                .find(|dirty| dirty.name == row.name && dirty.token > row.token);
            holder.cloned().unwrap_or(row)
        })
        .collect())
}

fn read<C>(conn: &mut C, state: LockState) -> QueryResult<Vec<LockRow>>
where
    C: LoadConnection<Backend = Mysql>,
{
    let rows: Vec<Columns<Vec<u8>>> = List {}.load(conn)?;
    let row = |(name, token, owner, since, until, is_leased): Columns<Vec<u8>>| {
        let name = String::from_utf8_lossy(&name).into_owned();
        LockRow::new((name, token, owner, since, until, is_leased), state)
    };
    Ok(rows.into_iter().map(row).collect())
}
