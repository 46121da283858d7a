use crate::connections::JobPool;
use anyhow::{Context as _, bail};
use diesel::r2d2::R2D2Connection;
use job_core::{AsyncConnections, BoxFuture, Connections, JobConnection, WorkWithConnection};
use std::panic::resume_unwind;
use std::sync::Arc;
use tokio::sync::{Semaphore, watch};
use tokio::task::spawn_blocking;

/// Gives async jobs connections of the worker's pool, and tells them of the stop.
pub(super) struct Host<C: R2D2Connection + 'static> {
    pool: Arc<JobPool<C>>,
    /// As many as connections: who waits for one must not hold a thread.
    turns: Arc<Semaphore>,
    stopping: watch::Receiver<bool>,
}

impl<C> Host<C>
where
    C: JobConnection + R2D2Connection + 'static,
{
    pub(super) fn new(pool: Arc<JobPool<C>>, stopping: watch::Receiver<bool>) -> Self {
        Host {
            turns: Arc::new(Semaphore::new(pool.size())),
            pool,
            stopping,
        }
    }
}

impl<C> AsyncConnections for Host<C>
where
    C: JobConnection + R2D2Connection + 'static,
{
    fn with(&self, work: WorkWithConnection) -> BoxFuture<'_, anyhow::Result<()>> {
        Box::pin(async move {
            let turn = Arc::clone(&self.turns).acquire_owned().await?;
            let pool = Arc::clone(&self.pool);
            // It may wait for a thread, and the future may be dropped meanwhile.
            let wanted = Arc::new(());
            let is_wanted = Arc::downgrade(&wanted);
            let done = spawn_blocking(move || {
                let _turn = turn;
                let mut work = Some(work);
                pool.with(&mut |conn| {
                    if let Some(work) = work.take()
                        && is_wanted.strong_count() > 0
                    {
                        work(conn);
                    }
                })
            })
            .await;
            drop(wanted);
            match done {
                Ok(done) => done,
                Err(error) => match error.try_into_panic() {
                    Ok(payload) => resume_unwind(payload),
                    Err(error) => bail!("the worker's runtime has ended: {error}"),
                },
            }
            .context("a connection for an async job")
        })
    }

    fn type_name(&self) -> Option<&'static str> {
        Some(std::any::type_name::<C>())
    }

    fn is_stopping(&self) -> bool {
        *self.stopping.borrow()
    }

    fn stopping(&self) -> BoxFuture<'_, ()> {
        let mut stopping = self.stopping.clone();
        Box::pin(async move {
            // Where there is nobody left to tell, the worker has stopped.
            let _ = stopping.wait_for(|stopping| *stopping).await;
        })
    }
}
