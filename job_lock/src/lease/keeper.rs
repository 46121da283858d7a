use super::claim::Claim;
use crate::attendant::Attendant;
use crate::connect::{connect, on_idle};
use crate::{Connect, LockError};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::thread;
use std::time::{Duration, Instant};

/// How long to try to release a lease, at most. What is not released ends by itself, and whoever has held it need not wait
/// for that.
const RELEASE_GRACE: Duration = Duration::from_secs(5);

/// How much longer to wait for the keeper, which is about to end by itself unless its connection hangs.
const GRACE: Duration = Duration::from_secs(1);

/// The thread that renews a lease and at last releases it, on a connection of its own.
#[derive(Debug)]
pub(crate) struct Keeper {
    claim: Arc<Claim>,
    thread: Attendant<bool>,
}

impl Keeper {
    /// # Errors
    /// [`LockError::NoThread`], and the lease is released.
    pub(crate) fn start<M: Connect>(
        connections: &M,
        conn: M::Conn,
        claim: Arc<Claim>,
    ) -> Result<Self, LockError> {
        let thread = Attendant::start("gatun-lease", {
            let (connections, claim) = (connections.clone(), claim.clone());
            move |stop| {
                let mut session = Session {
                    connections,
                    conn: Some(conn),
                };
                keep(&claim, &mut session, stop)
            }
        });
        match thread {
            Ok(thread) => Ok(Self { claim, thread }),
            Err(error) => {
                // Its own connection went with the thread. If there is no other, the lease ends after its time to live.
                if let Ok(mut conn) = connect(connections) {
                    let _ = claim.release(&mut conn);
                }
                Err(claim.no_thread(&error))
            }
        }
    }

    /// Has the lease released, if that can be done soon, and says whether it was ours until then.
    pub(crate) fn finish(mut self) -> bool {
        self.end()
    }

    fn end(&mut self) -> bool {
        let patience = self.claim.trust.left().min(RELEASE_GRACE) + GRACE;
        match self.thread.end(patience) {
            Ok(released) => released,
            Err(RecvTimeoutError::Disconnected) => false,
            Err(RecvTimeoutError::Timeout) => {
                log::warn!(
                    "the connection of lease {:?} hangs: the lease is left to expire, and its thread to end with it",
                    self.claim.name
                );
                !self.claim.trust.is_over()
            }
        }
    }
}

impl Drop for Keeper {
    fn drop(&mut self) {
        self.end();
    }
}

struct Session<M: Connect> {
    connections: M,
    conn: Option<M::Conn>,
}

impl<M: Connect> Session<M> {
    /// Tries once, on a new connection if the last one broke, also while it was idle. `None`: the database gave no answer.
    fn try_once(
        &mut self,
        what: &str,
        claim: &Claim,
        work: impl FnMut(&mut M::Conn) -> diesel::QueryResult<bool>,
    ) -> Option<bool> {
        let (conn, result) = on_idle(&self.connections, self.conn.take(), work);
        self.conn = conn;
        result
            .inspect_err(|error| log::warn!("lease {:?} is not {what}: {error}", claim.name))
            .ok()
    }
}

fn keep<M: Connect>(claim: &Claim, session: &mut Session<M>, stop: &Receiver<()>) -> bool {
    let mut pause = claim.renew_every;
    while let Err(RecvTimeoutError::Timeout) = stop.recv_timeout(pause) {
        // A leader that has conceded.
        if claim.trust.is_lost_for_good() {
            break;
        }
        match session.try_once("renewed", claim, |conn| claim.renew(conn)) {
            Some(true) => pause = claim.renew_every,
            Some(false) => return false,
            None => pause = claim.retry_pause(),
        }
    }
    release(claim, session)
}

/// Tries until it comes through, for a while. Without an answer the lease was ours if it still may be trusted.
fn release<M: Connect>(claim: &Claim, session: &mut Session<M>) -> bool {
    let start = Instant::now();
    loop {
        match session.try_once("released", claim, |conn| claim.release(conn)) {
            Some(ours) => return ours,
            None if claim.trust.is_over() => return false,
            None if start.elapsed() + claim.retry_pause() >= RELEASE_GRACE => {
                log::warn!(
                    "lease {:?} could not be released in {RELEASE_GRACE:?}, and keeps others out until its time to live is over",
                    claim.name
                );
                return true;
            }
            None => thread::sleep(claim.retry_pause()),
        }
    }
}
