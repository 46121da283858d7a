use super::{Slot, claim};
use crate::{Connect, LockError};
use std::fmt;
use std::time::Duration;

const HEARTBEAT: Duration = Duration::from_secs(5);
const SHORTEST: Duration = Duration::from_millis(10);
const LONGEST: Duration = Duration::from_secs(24 * 3600);

/// The most slots that a namespace can have, and the most bytes of its name.
const MOST: u32 = 65_536;
const MAX_BYTES: usize = 200;

/// A slot that is about to be claimed, with what is to be different from [`Slot::claim`]. Made by [`Slot::on`].
///
/// ```
/// # #[cfg(feature = "sqlite")]
/// # fn main() -> Result<(), job_lock::LockError> {
/// # let db = job_test::sqlite::Db::new();
/// # let manager = std::sync::Arc::new(db.manager());
/// use job_lock::Slot;
/// use std::time::Duration;
///
/// let slot = Slot::on(&manager, "recount-orders", 8)
///     .heartbeat(Duration::from_secs(1))
///     .claim()?;
/// assert_eq!(slot.map(|slot| slot.number()), Some(0));
/// # Ok(())
/// # }
/// # #[cfg(not(feature = "sqlite"))]
/// # fn main() {}
/// ```
#[must_use = "call claim"]
pub struct SlotOptions<M: Connect> {
    pub(super) connections: M,
    pub(super) namespace: String,
    pub(super) of: u32,
    pub(super) heartbeat: Duration,
}

impl<M: Connect> SlotOptions<M> {
    pub(super) fn new(connections: &M, namespace: &str, of: u32) -> Self {
        Self {
            connections: connections.clone(),
            namespace: namespace.to_owned(),
            of,
            heartbeat: HEARTBEAT,
        }
    }

    /// How often the database is asked whether the slot is still this one's, and so how soon
    /// [`is_lost`](Slot::is_lost) knows of a loss; 5 seconds, if not said; from 10 milliseconds to a day.
    ///
    /// No answer for so long, or for 5 seconds if that is longer, is a loss too. On SQLite it is how often the lease is
    /// renewed, and the lease lasts for three heartbeats, or for 15 seconds if that is longer.
    pub fn heartbeat(mut self, interval: Duration) -> Self {
        self.heartbeat = interval.clamp(SHORTEST, LONGEST);
        self
    }

    /// Claims the first number that is free.
    ///
    /// # Errors
    /// As [`Slot::claim`].
    pub fn claim(&self) -> Result<Option<Slot<M>>, LockError> {
        self.check()?;
        let claimed = claim::claim(self)?;
        Ok(claimed.map(|(number, hold)| Slot {
            namespace: self.namespace.clone(),
            number,
            of: self.of,
            hold,
        }))
    }

    fn check(&self) -> Result<(), LockError> {
        let is_named = (1..=MAX_BYTES).contains(&self.namespace.len()) && !self.namespace.contains('\0');
        if is_named && (1..=MOST).contains(&self.of) {
            return Ok(());
        }
        Err(LockError::InvalidSlots {
            namespace: self.namespace.chars().take(MAX_BYTES).collect(),
            of: self.of,
        })
    }
}

impl<M: Connect> fmt::Debug for SlotOptions<M> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SlotOptions")
            .field("namespace", &self.namespace)
            .field("of", &self.of)
            .field("heartbeat", &self.heartbeat)
            .finish_non_exhaustive()
    }
}
