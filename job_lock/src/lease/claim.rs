use super::trust::{Moment, Trust};
use super::{LeaseOptions, PAUSE};
use crate::backend::LockBackend;
use crate::backend::lease::{LeaseBackend, LeaseKey};
use crate::wait::Patience;
use crate::{LockConnection, LockError, create, owner};
use diesel::result::{Error, QueryResult};
use std::time::Duration;

/// What came of one try to take a lease.
enum Attempt {
    Claimed(Claim),
    /// Somebody has it.
    Held,
    /// There is no such row.
    Missing,
    /// Others were in the way, so that it is not known whether somebody has it.
    Crowded,
}

/// One acquisition of a lease: what its holder and its keeper share.
#[derive(Debug)]
pub(crate) struct Claim {
    pub(crate) name: String,
    owner: String,
    pub(crate) token: i64,
    ttl: Duration,
    pub(crate) renew_every: Duration,
    at_least: Duration,
    pub(crate) trust: Trust,
    /// The slot that this is, by namespace and number, where slots are leases.
    slot: Option<(String, u32)>,
}

impl Claim {
    /// Waits for the lease as the options say.
    pub(crate) fn acquire<C: LockConnection>(
        options: &LeaseOptions,
        conn: &mut C,
    ) -> Result<Self, LockError> {
        let patience = Patience::new(options.wait);
        loop {
            match Self::attempt(options, conn)? {
                Attempt::Claimed(claim) => return Ok(claim),
                Attempt::Missing if options.create_missing => {
                    create::create_patiently(conn, &options.name, &patience)?;
                }
                Attempt::Missing => return Err(LockError::Unknown(options.name.clone())),
                Attempt::Held | Attempt::Crowded if patience.pause(PAUSE) => {}
                Attempt::Held | Attempt::Crowded => return Err(LockError::Busy(options.name.clone())),
            }
        }
    }

    /// Takes the lease, and makes its row, unless somebody has it, whom it does not wait for: the patience is for those who
    /// only stand in the way of an answer. `None`: somebody has it.
    ///
    /// # Errors
    /// [`LockError::Busy`]: nobody knows whether somebody has it.
    pub(crate) fn acquire_if_free<C: LockConnection>(
        options: &LeaseOptions,
        conn: &mut C,
        patience: &Patience,
    ) -> Result<Option<Self>, LockError> {
        loop {
            match Self::attempt(options, conn)? {
                Attempt::Claimed(claim) => return Ok(Some(claim)),
                Attempt::Held => return Ok(None),
                Attempt::Missing => {
                    create::create_patiently(conn, &options.name, patience)?;
                }
                Attempt::Crowded if patience.pause(PAUSE) => {}
                Attempt::Crowded => return Err(LockError::Busy(options.name.clone())),
            }
        }
    }

    fn attempt<C: LockConnection>(options: &LeaseOptions, conn: &mut C) -> Result<Attempt, LockError> {
        options.check()?;
        let name = options.name.as_str();
        let owner = owner::new();
        let start = Moment::now();
        let ttl = micros(options.ttl);
        let token = match C::Db::at_once(conn, ttl, |conn| C::Db::lease(conn, name, &owner, ttl)) {
            Ok(Some(token)) => token,
            // Who has all of SQLite's file lets nobody read either, where it has a rollback journal.
            Ok(None) => {
                return match C::Db::at_once(conn, ttl, |conn| C::Db::exists(conn, name)) {
                    Ok(true) => Ok(Attempt::Held),
                    Ok(false) => Ok(Attempt::Missing),
                    Err(error) => crowded(conn, error, name),
                };
            }
            Err(error) => return crowded(conn, error, name),
        };
        Ok(Attempt::Claimed(Self {
            name: name.to_owned(),
            owner,
            token,
            ttl: options.ttl,
            renew_every: options.interval(),
            at_least: options.at_least,
            trust: Trust::new(start, options.ttl - options.margin()),
            slot: None,
        }))
    }

    pub(crate) fn for_slot(self, namespace: &str, number: u32) -> Self {
        Self {
            slot: Some((namespace.to_owned(), number)),
            ..self
        }
    }

    pub(crate) fn key(&self) -> LeaseKey<'_> {
        LeaseKey {
            name: &self.name,
            owner: &self.owner,
            token: self.token,
        }
    }

    pub(crate) fn ttl_micros(&self) -> i64 {
        micros(self.ttl)
    }

    /// `false`: it is another's.
    pub(crate) fn renew<C: LockConnection>(&self, conn: &mut C) -> QueryResult<bool> {
        let start = Moment::now();
        let ours = C::Db::at_once(conn, self.ttl_micros(), |conn| {
            C::Db::renew(conn, self.key(), self.ttl_micros())
        })?;
        self.note(ours, start);
        Ok(ours)
    }

    pub(crate) fn release<C: LockConnection>(&self, conn: &mut C) -> QueryResult<bool> {
        C::Db::at_once(conn, self.ttl_micros(), |conn| {
            C::Db::release(conn, self.key(), micros(self.at_least))
        })
    }

    /// The database has said whose the lease is.
    pub(crate) fn note(&self, ours: bool, start: Moment) {
        if ours {
            self.trust.confirm(start);
        } else {
            self.trust.lose();
        }
    }

    pub(crate) fn lost(&self) -> LockError {
        match &self.slot {
            None => LockError::LeaseLost(self.name.clone()),
            Some((namespace, number)) => LockError::SlotLost {
                namespace: namespace.clone(),
                number: *number,
            },
        }
    }

    pub(crate) fn no_thread(&self, error: &std::io::Error) -> LockError {
        LockError::NoThread {
            name: self.title().to_owned(),
            reason: error.to_string(),
        }
    }

    /// What the user calls it.
    pub(crate) fn title(&self) -> &str {
        self.slot.as_ref().map_or(&self.name, |(namespace, _)| namespace)
    }

    pub(crate) fn check(&self) -> Result<(), LockError> {
        if self.trust.is_over() {
            return Err(self.lost());
        }
        Ok(())
    }

    /// How long to wait after an attempt that failed.
    pub(crate) fn retry_pause(&self) -> Duration {
        (self.ttl / 20).clamp(Duration::from_millis(1), Duration::from_secs(1))
    }
}

fn micros(duration: Duration) -> i64 {
    i64::try_from(duration.as_micros()).unwrap_or(i64::MAX)
}

/// Gives the error of an attempt its meaning: it is alone in its transaction, and may be made again.
fn crowded<C: LockConnection>(conn: &mut C, error: Error, name: &str) -> Result<Attempt, LockError> {
    match LockError::taking::<C::Db>(error, name) {
        LockError::Busy(_) | LockError::Deadlock(_) | LockError::Serialization(_) => Ok(Attempt::Crowded),
        error => Err(error.explained(conn)),
    }
}
