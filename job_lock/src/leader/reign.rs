use super::term::GLANCE;
use super::{Leader, Term};
use crate::lease::{Claim, Keeper};
use crate::{Connect, Lease, LockError};
use std::fmt;
use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::thread;

impl<M: Connect> Leader<'_, M> {
    /// One term, from its beginning to its end.
    pub(super) fn reign<E>(
        &self,
        conn: M::Conn,
        claim: Claim,
        stop: &(impl Fn() -> bool + Sync),
        closure: &mut impl FnMut(&Term<'_, M>) -> Result<(), E>,
    ) -> Result<(), E>
    where
        E: From<LockError> + fmt::Display,
    {
        let claim = Arc::new(claim);
        let keeper = Keeper::start(&self.connections, conn, claim.clone())?;
        let lease = Lease::new(self.connections.clone(), claim.clone());
        let result = self.watched(&lease, || {
            (self.on_gain)(lease.token());
            closure(&Term::new(&lease, stop))
        });
        // The watcher has called on_loss by now, in either case.
        let was_lost = lease.is_lost();
        drop(lease);
        keeper.finish();
        match result {
            Err(error) => Err(claim.no_thread(&error).into()),
            Ok(Ok(Err(error))) if was_lost => {
                log::warn!("the leader {:?} lost its term: {error}", self.options.name);
                Ok(())
            }
            Ok(Ok(result)) => result,
            Ok(Err(panic)) => resume_unwind(panic),
        }
    }

    /// Runs `work` while a thread watches the lease. An error: there is no such thread, and `work` did not run. A panic is
    /// that of `work`, or else that of the watcher's callback.
    fn watched<T>(&self, lease: &Lease<M>, work: impl FnOnce() -> T) -> io::Result<thread::Result<T>> {
        let (ended, is_ended) = channel::<()>();
        thread::scope(|scope| {
            let watcher = thread::Builder::new()
                .name("gatun-leader".into())
                .spawn_scoped(scope, || self.watch(lease, is_ended))?;
            let result = catch_unwind(AssertUnwindSafe(work));
            drop(ended);
            // Joined by hand: the scope's own panic would not say why.
            let watched = watcher.join();
            Ok(result.and_then(|value| watched.map(|()| value)))
        })
    }

    /// It never speaks to the database, so that it cannot hang with it.
    fn watch(&self, lease: &Lease<M>, ended: Receiver<()>) {
        while !lease.is_lost() {
            let look_again = lease.trusted_for().min(GLANCE);
            if let Err(RecvTimeoutError::Disconnected) = ended.recv_timeout(look_again) {
                return (self.on_loss)(lease.token());
            }
        }
        lease.concede();
        (self.on_loss)(lease.token());
    }
}
