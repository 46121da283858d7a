use super::session::Session;
use crate::lease::Keeper;
use crate::{Connect, Lease};

/// By what a slot is held.
pub(crate) enum Hold<M: Connect> {
    Session(Session<M::Conn>),
    Lease { lease: Lease<M>, _keeper: Keeper },
}

impl<M: Connect> Hold<M> {
    /// Asks the database.
    pub(super) fn check(&mut self, namespace: &str, number: u32) -> bool {
        match self {
            Self::Session(session) => session.check(namespace, number),
            Self::Lease { lease, .. } => {
                // A renewal that finds the file busy says nothing; the lease knows until when it may be trusted.
                let _ = lease.renew();
                !lease.is_lost()
            }
        }
    }

    pub(super) fn is_known_lost(&self) -> bool {
        match self {
            Self::Session(session) => session.is_lost(),
            Self::Lease { lease, .. } => lease.check().is_err(),
        }
    }

    pub(super) fn free(&mut self, namespace: &str, number: u32) {
        match self {
            Self::Session(session) => session.free(namespace, number),
            // The keeper frees it when it goes.
            Self::Lease { .. } => {}
        }
    }
}
