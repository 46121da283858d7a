//! A worker is a number.

mod claim;
mod heart;
mod hold;
mod options;
mod session;

pub use options::SlotOptions;

use hold::Hold;

use crate::{Connect, LockError};
use std::fmt;

/// A number from 0 that no other process has in its namespace, for as long as this value lives: the first that was free.
/// Worker 3 of 8 works on what is the 3rd eighth, and no row is worked on twice.
///
/// A slot owns a connection. On PostgreSQL, MySQL and MariaDB it is a lock of that connection's session, and needs no
/// table: it is free again as soon as the session ends, however that came. On SQLite, which has no sessions, it is a lease of
/// 15 seconds in the table `locks`, which a thread renews.
///
/// **The session can end while this process does something else.** A thread asks the database every
/// [heartbeat](SlotOptions::heartbeat) of 5 seconds whether the session still has the slot, unless the connection is in
/// use. So work in [`transaction`](Slot::transaction), which fails after a loss, however short a time ago it was; and look at
/// [`is_lost`](Slot::is_lost), which costs nothing, between other work, which may overlap with another's for a heartbeat.
///
/// ```
/// # #[cfg(feature = "sqlite")]
/// # fn main() -> anyhow::Result<()> {
/// # let db = job_test::sqlite::Db::new();
/// # let manager = std::sync::Arc::new(db.manager());
/// # db.execute("CREATE TABLE orders (id BIGINT NOT NULL, done BOOLEAN NOT NULL DEFAULT FALSE)");
/// use diesel::prelude::*;
/// use job_lock::Slot;
///
/// let Some(mut slot) = Slot::claim(&manager, "recount-orders", 8)? else {
///     return Ok(()); // eight others are at work
/// };
/// let mine = format!("((id % 8) + 8) % 8 = {}", slot.number());
/// slot.transaction(|conn| {
///     diesel::sql_query(format!("UPDATE orders SET done = TRUE WHERE {mine}")).execute(conn)?;
///     anyhow::Ok(())
/// })?;
/// # Ok(())
/// # }
/// # #[cfg(not(feature = "sqlite"))]
/// # fn main() {}
/// ```
///
/// # What it does not do
///
/// While fewer than all slots are claimed, nobody works on what belongs to the others. Two processes that give
/// different numbers of slots do not exclude each other's rows.
///
/// # Proxies
///
/// A proxy that gives one session to several clients, such as PgBouncer in transaction mode, makes a session's lock
/// anybody's. `claim` refuses that with [`LockError::SharedSession`]: it opens two connections and looks whether they get
/// the same session, or one gets several. It needs the second one for a moment only. It cannot detect a proxy that shares
/// sessions only later, under load; [`transaction`](Slot::transaction) still fails where the session at that moment
/// does not have the lock, but such a lock may be found in the session of another client.
///
/// # Keys
///
/// A namespace belongs to one database (on PostgreSQL whatever the schema is), and the keys may be had by whoever uses
/// the same ones:
///
/// | | key |
/// |---|---|
/// | PostgreSQL | `pg_advisory_lock(int4, int4)` with the upper 32 bits of the namespace's 64-bit FNV-1a hash; its lower 16 bits × 65536 + the number |
/// | MySQL, MariaDB | `GET_LOCK` of `gatun_slot_`, the MD5 of database/namespace, `_` and the number |
/// | SQLite | the lock `slot/`namespace`/`number |
pub struct Slot<M: Connect> {
    namespace: String,
    number: u32,
    of: u32,
    hold: Hold<M>,
}

impl<M: Connect> Slot<M> {
    /// Claims the first free number in `0..of`. `None`: none is free.
    ///
    /// # Errors
    /// [`LockError::SharedSession`] behind a proxy; [`LockError::InvalidSlots`]; [`LockError::NoAnswer`];
    /// [`LockError::NoConnection`], [`LockError::Refused`] or [`LockError::OpenTransaction`]; [`LockError::NoThread`], and
    /// the slot is free again; [`LockError::Busy`] on SQLite where others wrote to the file for 5 seconds, or for the
    /// connection's `busy_timeout` if that is longer, so that nobody knows what is free: try again later, or write in shorter
    /// transactions; or the database's.
    pub fn claim(connections: &M, namespace: &str, of: u32) -> Result<Option<Self>, LockError> {
        Self::on(connections, namespace, of).claim()
    }

    /// A slot to be claimed with options.
    pub fn on(connections: &M, namespace: &str, of: u32) -> SlotOptions<M> {
        SlotOptions::new(connections, namespace, of)
    }

    /// The number, from 0.
    pub fn number(&self) -> u32 {
        self.number
    }

    /// How many slots there are.
    pub fn of(&self) -> u32 {
        self.of
    }

    /// Whether the slot is lost: a heartbeat found that its session has it no more, or got no answer in time; on SQLite
    /// the lease is another's, or was not renewed for so long that it may be. It never changes back. It asks no database.
    ///
    /// ```
    /// # #[cfg(feature = "sqlite")]
    /// # fn main() -> Result<(), job_lock::LockError> {
    /// # let db = job_test::sqlite::Db::new();
    /// # let manager = std::sync::Arc::new(db.manager());
    /// # let slot = job_lock::Slot::claim(&manager, "send-letters", 8)?.unwrap();
    /// for _letter in ["a.pdf", "b.pdf"] {
    ///     if slot.is_lost() {
    ///         break; // another process may have the number by now
    ///     }
    ///     // ... what is not in this database ...
    /// }
    /// # Ok(())
    /// # }
    /// # #[cfg(not(feature = "sqlite"))]
    /// # fn main() {}
    /// ```
    pub fn is_lost(&self) -> bool {
        self.hold.is_lost()
    }

    /// Asks the database at once whether the slot is still this one's, as before an effect that takes long. It need not be
    /// called otherwise: the database is asked in the background.
    ///
    /// # Errors
    /// [`LockError::SlotLost`]; it stays lost. Claim another.
    pub fn check(&mut self) -> Result<(), LockError> {
        if self.hold.check() {
            Ok(())
        } else {
            Err(self.lost())
        }
    }

    /// Runs `work` in a transaction, at READ COMMITTED, whose first statement proves that the slot is this one's. On
    /// PostgreSQL, MySQL and MariaDB it runs in the very session that has the lock, and cannot outlive it; on SQLite the
    /// lock's row stays locked to the commit.
    ///
    /// # Errors
    /// The closure's, as it is; [`LockError::SlotLost`], and the closure did not run; [`LockError::Lost`] where the
    /// transaction was over before the closure was; or the database's. Nothing is committed then, but for what
    /// [`Lost`](LockError::Lost) tells, and where the connection was lost at the COMMIT, when all may be.
    ///
    /// # Panics
    /// When the closure does, after a rollback.
    pub fn transaction<T, E>(&mut self, work: impl FnOnce(&mut M::Conn) -> Result<T, E>) -> Result<T, E>
    where
        E: From<LockError>,
    {
        if self.is_lost() {
            return Err(self.lost().into());
        }
        match &self.hold {
            Hold::Session(heart) => heart.session().transaction(work),
            Hold::Lease { lease, .. } => lease.transaction(work),
        }
    }

    fn lost(&self) -> LockError {
        LockError::SlotLost {
            namespace: self.namespace.clone(),
            number: self.number,
        }
    }
}

impl<M: Connect> fmt::Debug for Slot<M> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Slot")
            .field("namespace", &self.namespace)
            .field("number", &self.number)
            .field("of", &self.of)
            .finish_non_exhaustive()
    }
}
