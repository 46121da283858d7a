use super::claim::Claim;
use crate::attendant::Attendant;
use crate::connect::{connect, on_idle};
use crate::{Connect, LockError};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::thread;
use std::time::Duration;

/// How long to wait for the keeper where trust has ended already.
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

    /// Has the lease released, and says whether it was ours until then.
    pub(crate) fn finish(mut self) -> bool {
        self.end()
    }

    fn end(&mut self) -> bool {
        let patience = self.claim.trust.left().max(GRACE);
        let released = self.thread.end(patience);
        if let Err(RecvTimeoutError::Timeout) = released {
            log::warn!(
                "the connection of lease {:?} hangs: the lease is left to expire, and its thread to end with it",
                self.claim.name
            );
        }
        released.unwrap_or(false)
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
    loop {
        match session.try_once("released", claim, |conn| claim.release(conn)) {
            Some(ours) => return ours,
            None if claim.trust.is_over() => return false,
            None => thread::sleep(claim.retry_pause()),
        }
    }
}
