use super::claim::Claim;
use super::trust::Moment;
use crate::backend::LockBackend;
use crate::backend::lease::LeaseBackend;
use crate::{Connect, LockConnection, LockError};
use chrono::{DateTime, Utc};
use diesel::connection::TransactionManager;
use diesel::result::QueryResult;
use job_db::{Database, DbConnection, Fault, roll_back_to, transaction_depth};
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};

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
    let (mut conn, proof) = match begin(connections, idle, claim) {
        Ok(begun) => begun,
        Err(error) => return (None, Err(error.into())),
    };
    let Some(proof) = proof else {
        roll_back_to(&mut conn, 0);
        claim.trust.lose();
        return (Some(conn), Err(claim.lost().into()));
    };
    let result = catch_unwind(AssertUnwindSafe(|| {
        let value = work(&mut conn)?;
        commit(&mut conn, claim, proof)?;
        Ok(value)
    }));
    if !matches!(result, Ok(Ok(_))) {
        roll_back_to(&mut conn, 0);
    }
    match result {
        Ok(Ok(value)) => {
            claim.trust.confirm(start);
            (Some(conn), Ok(value))
        }
        // It may be the connection's, and a new one costs little.
        Ok(Err(error)) => (None, Err(error)),
        Err(panic) => resume_unwind(panic),
    }
}

/// When the lease ends, as only this transaction sees it.
type Proof = DateTime<Utc>;

fn begin<M: Connect>(
    connections: &M,
    idle: Option<M::Conn>,
    claim: &Claim,
) -> Result<(M::Conn, Option<Proof>), LockError> {
    if let Some(mut conn) = idle {
        match prove(&mut conn, claim) {
            // It was idle for a while, and nothing was done with it yet.
            Err(error) if <<M::Conn as DbConnection>::Db>::fault(&error) == Fault::Disconnected => {}
            proof => return Ok((conn, proof?)),
        }
    }
    let mut conn = connections.connect()?;
    let proof = prove(&mut conn, claim);
    if proof.is_err() {
        roll_back_to(&mut conn, 0);
    }
    Ok((conn, proof?))
}

fn prove<C: LockConnection>(conn: &mut C, claim: &Claim) -> QueryResult<Option<Proof>> {
    C::Db::begin(conn)?;
    // A time that no renewal gives, so that what the transaction has written is told from what was there before it.
    let ttl = claim.ttl_micros() + fastrand::i64(1..1000);
    if !C::Db::fence(conn, claim.key(), ttl)? {
        return Ok(None);
    }
    C::Db::expiry(conn, claim.key())
}

/// Commits, if the transaction is still the one that was proved to hold the lease. A database may have rolled it back after
/// an error that the closure swallowed; COMMIT would say nothing then.
fn commit<C: LockConnection>(conn: &mut C, claim: &Claim, proof: Proof) -> Result<(), LockError> {
    let over = || LockError::Lost(claim.name.clone());
    if transaction_depth(conn) != 1 {
        return Err(over());
    }
    match C::Db::expiry(conn, claim.key()) {
        Ok(Some(seen)) if seen == proof => {}
        Err(error) if C::Db::fault(&error) == Fault::Disconnected => return Err(error.into()),
        _ => return Err(over()),
    }
    C::TransactionManager::commit_transaction(conn)
        .map_err(|error| LockError::committing::<C::Db>(error, &claim.name))
}
