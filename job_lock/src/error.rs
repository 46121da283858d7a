mod meaning; // what a database's error means for a lock

use crate::name::MAX_BYTES;
use diesel::result::Error;
use std::time::Duration;

/// Why a lock was not had, or what it protected was not committed. Nothing of the closure's writes is kept, but for
/// what a lease's fenced transactions committed before it was lost, for a COMMIT whose answer was lost, and for what
/// [`Lost`](LockError::Lost) tells.
///
/// A closure's own error passes through [`Lock::synchronize`](crate::Lock::synchronize) as it is; so where the closure
/// gives `anyhow::Error`, a lock's error is found by `error.downcast_ref::<LockError>()`.
///
/// ```
/// # #[cfg(feature = "sqlite")] {
/// # use diesel::Connection;
/// # let conn = &mut diesel::SqliteConnection::establish(":memory:").unwrap();
/// # job_lock::migrate(conn).unwrap();
/// use job_lock::{Lock, LockError};
///
/// let done: Result<(), LockError> = Lock::synchronize(conn, "nobody-made-it", |_| Ok(()));
/// assert!(matches!(done, Err(LockError::Unknown(name)) if name == "nobody-made-it"));
/// # }
/// ```
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum LockError {
    /// There is no lock of this name, and the closure did not run.
    #[error("there is no lock {0:?}: make it once with Lock::create, or ask for create_missing()")]
    Unknown(String),

    /// The connection is in a transaction already, so that the lock would be held until that transaction's end. (A
    /// connection with a test transaction of Diesel's is in one too.)
    #[error(
        "lock {0:?} was asked for on a connection that is in a transaction, which would hold it to its own end: \
         take the lock outside, or ask for join() if that is meant"
    )]
    InTransaction(String),

    /// `create_missing()` was asked for inside a transaction, where the new row could not be committed at once.
    #[error("lock {0:?} cannot be made inside a transaction: make it before with Lock::create")]
    CreateInTransaction(String),

    /// Somebody else holds the lock, and the time to wait for it is over. On SQLite whoever writes to the file holds every
    /// lock meanwhile: it may be that.
    #[error(
        "lock {0:?} is held by somebody else (on SQLite perhaps by one who only writes to the file): try again later, or wait \
         longer for it"
    )]
    Busy(String),

    /// Two transactions waited for each other, and the database ended this one. On MySQL and MariaDB that also ends
    /// the transaction that was joined.
    #[error(
        "lock {0:?} was part of a deadlock, and this transaction was chosen to end it: roll it back and try it again as \
         a whole; take several locks with Lock::synchronize_all"
    )]
    Deadlock(String),

    /// The transaction that was joined has looked at the database before the last holder of the lock changed it.
    #[error(
        "the transaction that lock {0:?} was to join sees the database as it was before the last holder's commit: \
         roll it back and try it again as a whole"
    )]
    Serialization(String),

    /// The transaction that held the lock was over before the closure was: the database gave it up after an error that the
    /// closure did not hand on, or the closure ended it itself, by SQL, by DDL on MySQL and MariaDB, or by Diesel's transaction
    /// manager. (Or it was there, with another one open inside it that the closure had begun and not ended; then all is rolled
    /// back.)
    ///
    /// No database can undo that any more. What the closure wrote before a COMMIT or DDL of its own is committed; what it
    /// wrote before a ROLLBACK, or before an error that ended the transaction, is not. What it wrote afterwards was
    /// committed one statement at a time, while another may have had the lock; but PostgreSQL refuses statements after an
    /// error.
    #[error(
        "the transaction that held lock {0:?} was over before its closure was, or had another open inside it. \
         What the closure wrote before a COMMIT or DDL of its own is committed; what it wrote before a ROLLBACK or an error \
         that ended the transaction is not; what it wrote afterwards may be committed, without the lock. \
         Look at what is there; and in the closure hand on the errors of statements, end what you begin, and \
         leave out COMMIT, ROLLBACK and, on MySQL and MariaDB, DDL"
    )]
    Lost(String),

    /// The lease is another's, or may be: it was not renewed in time. What was done in [`Lease::transaction`](crate::Lease::transaction)
    /// before is done; anything else may have been done beside another holder.
    #[error(
        "lease {0:?} was lost, or nobody could confirm in time that it was not: another may hold it by now, and what was \
         done outside its fenced transactions may have been done twice"
    )]
    LeaseLost(String),

    /// The time to live of a lease is not at least twice the interval of its renewal, or is below 10 milliseconds, or above a
    /// year.
    #[error(
        "the lease's ttl is {ttl:?}, renewed every {renew_every:?}: choose a ttl of at least twice the renewal's interval, \
         and between 10 ms and a year"
    )]
    InvalidTtl {
        /// How long the lease was to last.
        ttl: Duration,
        /// How often it was to be renewed.
        renew_every: Duration,
    },

    /// The session that had the slot has it no more: it was ended, somebody has freed the lock in it, or it gave no answer in
    /// time.
    #[error(
        "slot {number} of {namespace:?} was lost with its session: stop working on it, and claim another"
    )]
    SlotLost {
        /// The slots' namespace.
        namespace: String,
        /// The slot's number.
        number: u32,
    },

    /// The server's sessions are shared among connections, as by a proxy in transaction mode; a lock of a session's would
    /// then be anybody's.
    #[error(
        "the connections for slots {0:?} go through a proxy that gives one server session to several clients (such as \
         pgbouncer with pool_mode = transaction), where a session's lock is nobody's: connect to the server itself \
         or through a pool in session mode, or use a lease"
    )]
    SharedSession(String),

    /// The server could not say whether a slot is free: it is out of memory, or was told to end the session.
    #[error("the server gave no answer about a slot of {0:?}: try again on a new connection")]
    NoAnswer(String),

    /// There can be no such set of slots.
    #[error(
        "there are no {of} slots in {namespace:?}: give a namespace of 1 to 200 bytes, none of which is zero, and 1 to 65536 slots"
    )]
    InvalidSlots {
        /// The slots' namespace.
        namespace: String,
        /// How many there were to be.
        of: u32,
    },

    /// There was no connection to be had. Another try may do better.
    #[error("no connection to the database, which another try may heal: {0}")]
    NoConnection(String),

    /// The database refuses the connection, and will the next time: the address, the user or the password is wrong.
    #[error(
        "the database refuses connections: correct the address, the user, the password or its rights: {0}"
    )]
    Refused(String),

    /// A [`Connect`](crate::Connect) gave a connection that is in a transaction, as one with a test transaction of Diesel's is:
    /// nobody else would see what it writes.
    #[error(
        "a connection for a lease, a leader or a slot is in a transaction already, so that nobody else would see who holds \
         it: give a pool or a manager whose connections are in none, and have no test transaction"
    )]
    OpenTransaction,

    /// A fenced transaction, or a renewal, was asked for inside a fenced transaction of the same lease, on the same thread. It
    /// would wait for itself.
    #[error(
        "lease {0:?} is in a fenced transaction on this thread already, which another one would wait for: use the \
         connection that the closure got, or end it first"
    )]
    Nested(String),

    /// No thread could be started that renews the lease, watches the leader or asks about the slot. The closure did not run,
    /// and what was taken was given back.
    #[error(
        "no thread could be started for {name:?}, which was given back, and no closure ran: look at the limits on threads \
         and memory: {reason}"
    )]
    NoThread {
        /// The lock's name, or the slots' namespace.
        name: String,
        /// What the operating system says.
        reason: String,
    },

    /// No lock can have this name.
    #[error("no lock can be named {name:?}: a name has 1 to {MAX_BYTES} bytes, none of which is zero")]
    InvalidName {
        /// The name, cut where it is too long.
        name: String,
    },

    /// `synchronize_all` without a name would run the closure with no lock at all.
    #[error("no lock was named: give synchronize_all at least one name")]
    NoNames,

    /// The server lacks `SKIP LOCKED`.
    #[error("{server} is too old for locks: use {needed}")]
    ServerTooOld {
        /// The server's name and version.
        server: String,
        /// The oldest versions that serve.
        needed: &'static str,
    },

    /// Any other error of the database. Where it says that there is no table `locks`, call [`migrate`](crate::migrate);
    /// where the connection was lost, try again on another one.
    #[error(
        "the database gave an error for a lock: {0} (if there is no table `locks`, call job_lock::migrate; if the connection \
         was lost, try again on another one)"
    )]
    Database(Error),
}
