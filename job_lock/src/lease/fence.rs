use super::claim::Claim;
use super::trust::Moment;
use crate::backend::LockBackend;
use crate::backend::lease::LeaseBackend;
use crate::connect::keeping_idle;
use crate::mark::{mark, run_marked};
use crate::{Connect, LockConnection, LockError};
use diesel::result::QueryResult;
use job_db::roll_back_to;
use std::panic::resume_unwind;

/// Runs `work` in a transaction that first proves the lease to be ours, and holds its row locked to the commit.
pub(crate) fn fenced<M, T, E>(
    connections: &M,
    idle: Option<M::Conn>,
    claim: &Claim,
    work: impl FnOnce(&mut M::Conn) -> Result<T, E>,
) -> (Option<M::Conn>, Result<T, E>)
where
    M: Connect,
    E: From<LockError>,
{
    let start = Moment::now();
    let (mut conn, is_ours) = match keeping_idle(connections, idle, |conn| begin(conn, claim)) {
        Ok(begun) => begun,
        Err((conn, error)) => return (conn, Err(error.into())),
    };
    if !is_ours {
        roll_back_to(&mut conn, 0);
        claim.trust.lose();
        return (Some(conn), Err(claim.lost().into()));
    }
    match run_marked(&mut conn, claim.title(), work) {
        Ok(Ok(value)) => {
            claim.trust.confirm(start);
            (Some(conn), Ok(value))
        }
        // It may be the connection's, and a new one costs little.
        Ok(Err(error)) => (None, Err(error)),
        Err(panic) => resume_unwind(panic),
    }
}

/// Begins the transaction. `false`: the lease is another's.
fn begin<C: LockConnection>(conn: &mut C, claim: &Claim) -> QueryResult<bool> {
    let begun = C::Db::begin(conn).and_then(|()| {
        let is_ours = C::Db::fence(conn, claim.key(), claim.ttl_micros())?;
        if is_ours {
            mark(conn)?;
        }
        Ok(is_ours)
    });
    if begun.is_err() {
        roll_back_to(conn, 0);
    }
    begun
}
