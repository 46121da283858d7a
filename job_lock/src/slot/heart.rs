use super::session::Session;
use crate::attendant::Attendant;
use crate::{LockConnection, LockError};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::time::Duration;

/// How long to wait for the lock to be given back.
const PATIENCE: Duration = Duration::from_secs(5);
/// The same where it is lost already.
const GRACE: Duration = Duration::from_secs(1);

/// The thread that asks the database every heartbeat whether the session still has the slot's lock, and at last gives it
/// back.
pub(crate) struct Heart<C: LockConnection + Send + 'static> {
    session: Arc<Session<C>>,
    thread: Attendant<()>,
}

impl<C: LockConnection + Send + 'static> Heart<C> {
    /// # Errors
    /// [`LockError::NoThread`], and the lock is given back.
    pub(super) fn start(session: Session<C>, heartbeat: Duration) -> Result<Self, LockError> {
        let session = Arc::new(session);
        let thread = Attendant::start("gatun-slot", {
            let session = session.clone();
            move |stop| attend(&session, heartbeat, stop)
        });
        match thread {
            Ok(thread) => Ok(Self { session, thread }),
            Err(error) => {
                session.free();
                Err(session.no_thread(&error))
            }
        }
    }

    pub(super) fn session(&self) -> &Session<C> {
        &self.session
    }
}

impl<C: LockConnection + Send + 'static> Drop for Heart<C> {
    fn drop(&mut self) {
        let patience = if self.session.is_lost() { GRACE } else { PATIENCE };
        if let Err(RecvTimeoutError::Timeout) = self.thread.end(patience) {
            self.session
                .warn("its connection hangs: it is free when its session ends");
        }
    }
}

fn attend<C: LockConnection>(session: &Session<C>, heartbeat: Duration, stop: &Receiver<()>) {
    while let Err(RecvTimeoutError::Timeout) = stop.recv_timeout(heartbeat) {
        session.beat();
        if session.is_lost() {
            session.warn("it was lost with its session");
            break;
        }
    }
    session.free();
}
