//! One of many processes leads.

mod reign;
mod term;

pub use term::Term;

use crate::backend::LockBackend;
use crate::connect::connect;
use crate::lease::{Claim, LeaseOptions};
use crate::{Connect, LockError};
use job_db::{DbConnection, Fault};
use std::fmt;
use std::time::Duration;

type Callback<'a> = Box<dyn Fn(i64) + Send + Sync + 'a>;

/// One of all processes that call [`run`](Leader::run) with the same name leads, and when it is gone, another: at most
/// twice the time to live later, if it was killed, and at most a quarter of it, if it ended.
///
/// A leader is a lease for as long as it lasts. On any doubt it concedes, for good, and is a candidate again: what it does
/// in [`Term::transaction`] is fenced, and [`Term::is_over`] tells it to stop everything else.
///
/// ```
/// # #[cfg(feature = "sqlite")]
/// # fn main() -> anyhow::Result<()> {
/// # let db = job_test::sqlite::Db::new();
/// # let pool = db.pool(4);
/// use job_lock::Leader;
/// use std::sync::atomic::{AtomicBool, Ordering};
/// use std::time::Duration;
///
/// let stop = AtomicBool::new(false); // set by the app's shutdown
/// let connections = pool.clone(); // or Arc::new(ConnectionManager::<PgConnection>::new(&url))
/// Leader::new(&connections, "scheduler", Duration::from_secs(15))
///     .on_gain(|token| println!("leads, with token {token}"))
///     .on_loss(|token| println!("leads no more, with token {token}"))
///     .run(|| stop.load(Ordering::Relaxed), |term| {
///         while term.pause(Duration::from_millis(100)) {
///             term.transaction(|_conn| anyhow::Ok(()))?; // what only the leader may do
/// #           stop.store(true, Ordering::Relaxed);
///         }
///         Ok(())
///     })
/// # }
/// # #[cfg(not(feature = "sqlite"))]
/// # fn main() {}
/// ```
#[must_use = "call run"]
pub struct Leader<'a, M: Connect> {
    connections: M,
    options: LeaseOptions,
    on_gain: Callback<'a>,
    on_loss: Callback<'a>,
}

impl<'a, M: Connect> Leader<'a, M> {
    /// A candidate. The lock is made if there is none.
    pub fn new(connections: &M, name: &str, ttl: Duration) -> Self {
        Self {
            connections: connections.clone(),
            options: LeaseOptions::new(name, ttl).create_missing(),
            on_gain: Box::new(|_| {}),
            on_loss: Box::new(|_| {}),
        }
    }

    /// How often the lease is renewed; three times in its time to live, if not said.
    pub fn renew_every(mut self, interval: Duration) -> Self {
        self.options = self.options.renew_every(interval);
        self
    }

    /// Called with the term's token when leadership is gained, before the closure runs.
    pub fn on_gain(mut self, callback: impl Fn(i64) + Send + Sync + 'a) -> Self {
        self.on_gain = Box::new(callback);
        self
    }

    /// Called once for each term with its token, from another thread, as soon as leadership is lost or in doubt, while the
    /// closure may still run; or else when the closure has ended, before the lease is given back.
    pub fn on_loss(mut self, callback: impl Fn(i64) + Send + Sync + 'a) -> Self {
        self.on_loss = Box::new(callback);
        self
    }

    /// Is a candidate until it leads, runs `closure` while it leads, and goes on so until `stop` says so. It looks at `stop`
    /// some twenty times a second, and so does [`Term::is_over`].
    ///
    /// When the closure ends with `Ok`, the lease is given back, and the candidacy begins again; so it does after an error that
    /// the closure gives when the term was lost, which is logged. A database that cannot be reached is tried again.
    ///
    /// # Errors
    /// What the closure gives while the term was not lost; or a [`LockError`] that another try would hardly heal. Where the
    /// database says no (there is no table `locks`, or the password is wrong) it does so three times in a row before this
    /// gives it on, since not every message of a server that goes or comes is known.
    ///
    /// # Panics
    /// When the closure or a callback does, after the lease was given back.
    pub fn run<E>(
        &self,
        stop: impl Fn() -> bool + Sync,
        mut closure: impl FnMut(&Term<'_, M>) -> Result<(), E>,
    ) -> Result<(), E>
    where
        E: From<LockError> + fmt::Display,
    {
        self.options.check()?;
        let mut conn = None;
        let mut refusals = 0;
        while !stop() {
            match self.stand(&mut conn) {
                Ok(None) => refusals = 0,
                Ok(Some((conn, claim))) => {
                    refusals = 0;
                    self.reign(conn, claim, &stop, &mut closure)?;
                }
                Err(error) => {
                    refusals = match outlook::<<M::Conn as DbConnection>::Db>(&error) {
                        Outlook::Good => 0,
                        Outlook::Bad if refusals + 1 < REFUSALS => refusals + 1,
                        Outlook::Bad | Outlook::Hopeless => return Err(error.into()),
                    };
                    log::warn!(
                        "a candidate for {:?} waits for its database: {error}",
                        self.options.name
                    );
                }
            }
            term::pause(self.pause(), &stop);
        }
        Ok(())
    }

    /// One try to become the leader.
    fn stand(&self, conn: &mut Option<M::Conn>) -> Result<Option<(M::Conn, Claim)>, LockError> {
        let mut mine = conn.take().map_or_else(|| connect(&self.connections), Ok)?;
        let once = self.options.clone().wait(crate::Wait::No);
        match Claim::acquire(&once, &mut mine) {
            Ok(claim) => Ok(Some((mine, claim))),
            Err(LockError::Busy(_)) => {
                *conn = Some(mine);
                Ok(None)
            }
            Err(error) => Err(error),
        }
    }

    /// Between two tries: with jitter, so that candidates look at different times.
    fn pause(&self) -> Duration {
        self.options.ttl.mul_f64(0.1 + 0.15 * fastrand::f64())
    }
}

/// So often in a row the database says no before a candidate believes it.
const REFUSALS: u32 = 3;

/// Whether a later try may do better.
enum Outlook {
    Good,
    /// As far as one can tell, it will not.
    Bad,
    Hopeless,
}

fn outlook<DB: LockBackend>(error: &LockError) -> Outlook {
    match error {
        LockError::NoConnection(_) | LockError::Deadlock(_) | LockError::Serialization(_) => Outlook::Good,
        LockError::Database(error) if DB::fault(error) != Fault::Other || is_read_only(error) => {
            Outlook::Good
        }
        LockError::Database(_) | LockError::Refused(_) => Outlook::Bad,
        _ => Outlook::Hopeless,
    }
}

/// A server that has been the first one and is a copy now, until the address leads to the new one.
fn is_read_only(error: &diesel::result::Error) -> bool {
    error.to_string().contains("read-only")
}

impl<M: Connect> fmt::Debug for Leader<'_, M> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Leader")
            .field("options", &self.options)
            .finish_non_exhaustive()
    }
}
