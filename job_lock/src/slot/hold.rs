use super::heart::Heart;
use crate::lease::Keeper;
use crate::{Connect, Lease};

/// By what a slot is held. Dropped, it is free.
pub(crate) enum Hold<M: Connect> {
    Session(Heart<M::Conn>),
    Lease { lease: Lease<M>, _keeper: Keeper },
}

impl<M: Connect> Hold<M> {
    /// Asks the database.
    pub(super) fn check(&self) -> bool {
        match self {
            Self::Session(heart) => heart.session().check(),
            Self::Lease { lease, .. } => {
                // A renewal that finds the file busy says nothing; the lease knows until when it may be trusted.
                let _ = lease.renew();
                !self.is_lost()
            }
        }
    }

    /// It never changes back.
    pub(super) fn is_lost(&self) -> bool {
        match self {
            Self::Session(heart) => heart.session().is_lost(),
            Self::Lease { lease, .. } => {
                let is_lost = lease.is_lost();
                if is_lost {
                    lease.concede();
                }
                is_lost
            }
        }
    }
}
