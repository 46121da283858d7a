use chrono::{DateTime, Utc};

/// A lock as [`Lock::list`](crate::Lock::list) shows it.
///
/// What a holder writes into its row is not committed while it holds it, and so hidden from others. How much can be
/// shown all the same differs:
///
/// | | `state` | `owner`, `acquired_at` of a lock that is held |
/// |---|---|---|
/// | PostgreSQL | exact | the session's application name, process id and address; the start of its transaction, which is when it began to wait for the lock |
/// | MySQL, MariaDB | exact; `Unknown` inside a transaction | as the holder wrote them: host, process, thread, something random, and the number of its connection |
/// | SQLite | `Unknown` | of the last holder that has committed |
///
/// A lease that goes on is `Held` on all of them, with its owner, since it is committed; and so is the time that
/// [`lock_at_least`](crate::LeaseOptions::lock_at_least) adds. In a row that is not held, they are those of the last holder
/// that has committed.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct LockRow {
    /// The lock's name.
    pub name: String,
    /// The token of the last holder that has committed; of the holder of now, where the database shows it (MySQL, MariaDB).
    pub token: i64,
    /// Whether somebody holds it now.
    pub state: LockState,
    /// Who holds it, or held it last. For people: it may change its form.
    pub owner: Option<String>,
    /// Since when, or when it was last taken.
    pub acquired_at: Option<DateTime<Utc>>,
    /// When a lease on it ends. A lock of [`Lock::synchronize`](crate::Lock::synchronize) has no such time: it ends with its
    /// transaction.
    pub expires_at: Option<DateTime<Utc>>,
}

/// What a statement reads of a lock: name, token, owner, since when, until when, and whether a lease on it goes on.
pub(crate) type Columns<N = String> = (
    N,
    i64,
    Option<String>,
    Option<DateTime<Utc>>,
    Option<DateTime<Utc>>,
    bool,
);

impl LockRow {
    /// A lock as its row has it. A lease is seen there; for any other the caller knows the state, or not.
    pub(crate) fn new(columns: Columns, unleased: LockState) -> Self {
        let (name, token, owner, acquired_at, expires_at, is_leased) = columns;
        Self {
            name,
            token,
            state: if is_leased { LockState::Held } else { unleased },
            owner,
            acquired_at,
            expires_at,
        }
    }
}

/// Whether somebody holds a lock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum LockState {
    /// Nobody does.
    Free,
    /// Somebody does.
    Held,
    /// The database does not show it.
    Unknown,
}
