//! What stands in for async jobs without the feature `tokio`: nothing.

use crate::WorkerError;
use crate::completer::Done;
use crate::connections::JobPool;
use crate::registry::{Home, Registry};
use crate::team::Team;
use crossbeam_channel::Sender;
use diesel::r2d2::R2D2Connection;
use job_core::{ClaimedJob, Ticket};
use std::convert::Infallible;
use std::marker::PhantomData;
use std::sync::Arc;

pub(crate) struct Setup<X>(PhantomData<X>);

impl<X> Setup<X> {
    pub(crate) fn new() -> Self {
        Setup(PhantomData)
    }

    pub(crate) fn kinds(&self) -> Vec<String> {
        Vec::new()
    }

    pub(crate) fn homes(&self) -> &[Home] {
        &[]
    }

    pub(crate) fn duplicate(&self, _registry: &Registry<X>) -> Option<&'static str> {
        None
    }

    pub(crate) fn check(&self) -> Result<(), WorkerError> {
        Ok(())
    }

    pub(crate) fn start<C: R2D2Connection>(
        self,
        _pool: &Arc<JobPool<C>>,
    ) -> Result<Option<Futures<X>>, WorkerError> {
        Ok(None)
    }
}

/// There are none.
pub(crate) struct Futures<X>(Infallible, PhantomData<X>);

impl<X> Futures<X> {
    pub(crate) fn kinds(&self) -> Vec<String> {
        match self.0 {}
    }

    pub(crate) fn room(&self, _held: impl FnOnce() -> usize) -> usize {
        match self.0 {}
    }

    pub(crate) fn have_ended(&self) -> bool {
        match self.0 {}
    }

    pub(crate) fn is_waiting_for_room(&self) -> bool {
        match self.0 {}
    }

    pub(crate) fn are_none(&self) -> bool {
        match self.0 {}
    }

    pub(crate) fn tell_stopping(&self) {
        match self.0 {}
    }

    pub(crate) fn give_up(&self) {
        match self.0 {}
    }

    pub(crate) fn running(&self) -> Vec<(i64, i32)> {
        match self.0 {}
    }

    pub(crate) fn drop_lost(&self, _running: Vec<(i64, i32)>, _held: &[Ticket]) -> usize {
        match self.0 {}
    }
}

pub(crate) fn start<C, X>(_team: &Arc<Team<C, X>>, _jobs: Vec<ClaimedJob>, _done: &Sender<Done>)
where
    C: R2D2Connection + 'static,
{
}
