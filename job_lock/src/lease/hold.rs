//! The path of a lease: acquire, keep, run, release.

use super::claim::Claim;
use super::keeper::Keeper;
use super::{Lease, LeaseOptions};
use crate::connect::connect;
use crate::{Connect, LockError};
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::Arc;

pub(crate) fn hold<M, T, E>(
    options: &LeaseOptions,
    connections: &M,
    closure: impl FnOnce(&Lease<M>) -> Result<T, E>,
) -> Result<T, E>
where
    M: Connect,
    E: From<LockError>,
{
    options.check()?;
    let mut conn = connect(connections)?;
    let claim = Arc::new(Claim::acquire(options, &mut conn)?);
    let keeper = Keeper::start(connections, conn, claim.clone())?;
    let lease = Lease::new(connections.clone(), claim.clone());
    let result = catch_unwind(AssertUnwindSafe(|| closure(&lease)));
    drop(lease);
    let was_ours = keeper.finish();
    match result {
        Ok(Ok(_)) if !was_ours => Err(claim.lost().into()),
        Ok(result) => result,
        Err(panic) => resume_unwind(panic),
    }
}
