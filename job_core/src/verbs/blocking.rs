//! Transactions on Diesel's connections.

use crate::JobConnection;
use crate::again::{self, MayBeContended};
use diesel::result::Error;

pub(super) use job_db::{is_broken, transaction_depth};

/// What is done as a whole, in one transaction.
pub(super) trait Work<C> {
    type Done;
    type Error: From<Error> + MayBeContended;

    fn carry_out(&self, conn: &mut C) -> Result<Self::Done, Self::Error>;
}

/// In a savepoint of the caller's transaction.
pub(super) fn savepoint<C: JobConnection, W: Work<C>>(conn: &mut C, work: &W) -> Result<W::Done, W::Error> {
    job_db::savepoint(conn, |conn| work.carry_out(conn))
}

/// In a transaction, which is run again where another stood in its way; or in a savepoint of the caller's.
pub(super) fn write_transaction<C: JobConnection, W: Work<C>>(
    conn: &mut C,
    work: &W,
) -> Result<W::Done, W::Error> {
    again::write_transaction(conn, |conn| work.carry_out(conn))
}
