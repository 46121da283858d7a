//! The jobs that the benchmark enqueues, and where they leave their traces.

use crate::clock;
use anyhow::Result;
use job_core::{Perform, PerformAsync, Run, RunAsync};
use job_worker::StopHandle;
use serde::{Deserialize, Serialize};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::Duration;

/// What the jobs of one process share.
#[derive(Debug, Default)]
pub struct Desk {
    performed: AtomicU64,
    /// Stop the worker after so many jobs; 0 for never.
    pub stop_after: AtomicU64,
    pub stop: OnceLock<StopHandle>,
    /// (what the job carries, when it began), of [`Timed`].
    begun: Mutex<Vec<(u64, u64)>>,
}

impl Desk {
    /// Counts a job, and stops the worker where there were enough.
    fn count(&self) {
        let stop_after = self.stop_after.load(Ordering::Relaxed);
        if stop_after > 0
            && self.performed.fetch_add(1, Ordering::Relaxed) + 1 == stop_after
            && let Some(stop) = self.stop.get()
        {
            stop.stop();
        }
    }

    /// All that has begun until now.
    pub fn begun(&self) -> Vec<(u64, u64)> {
        self.begun.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

/// A job that does nothing, with about 100 bytes of arguments.
#[derive(Serialize, Deserialize)]
pub struct Nothing {
    pub padding: String,
}

impl Nothing {
    pub fn new() -> Self {
        Nothing {
            padding: "x".repeat(86),
        }
    }

    /// With 6 KB of hexadecimal digits, which do not compress well.
    pub fn large() -> Self {
        Nothing {
            padding: (0..380).map(|_| format!("{:016x}", fastrand::u64(..))).collect(),
        }
    }
}

impl Perform for Nothing {
    const KIND: &'static str = "nothing";
    type Context = Arc<Desk>;
    type Output = ();

    fn perform(&self, run: &Run<'_, Arc<Desk>>) -> Result<()> {
        run.context().count();
        Ok(())
    }
}

/// [`Nothing`], deleted when it has completed.
#[derive(Serialize, Deserialize)]
pub struct Gone(pub Nothing);

impl Perform for Gone {
    const KIND: &'static str = "gone";
    const DISCARD_COMPLETED: bool = true;
    type Context = Arc<Desk>;
    type Output = ();

    fn perform(&self, run: &Run<'_, Arc<Desk>>) -> Result<()> {
        self.0.perform(run)
    }
}

/// A job that notes when it began. It carries a number, or the time of its enqueue call.
#[derive(Serialize, Deserialize)]
pub struct Timed {
    pub carried: u64,
    pub padding: String,
}

impl Timed {
    pub fn new(carried: u64) -> Self {
        Timed {
            carried,
            padding: "x".repeat(60),
        }
    }
}

impl Perform for Timed {
    const KIND: &'static str = "timed";
    type Context = Arc<Desk>;
    type Output = ();

    fn perform(&self, run: &Run<'_, Arc<Desk>>) -> Result<()> {
        let began = clock::now();
        let mut begun = run.context().begun.lock().unwrap_or_else(PoisonError::into_inner);
        begun.push((self.carried, began));
        Ok(())
    }
}

/// A job that waits for somebody, for so long.
#[derive(Serialize, Deserialize)]
pub struct Wait {
    pub millis: u64,
}

impl PerformAsync for Wait {
    const KIND: &'static str = "wait";
    type Context = Arc<Desk>;
    type Output = ();

    async fn perform(&self, run: &RunAsync<Arc<Desk>>) -> Result<()> {
        tokio::time::sleep(Duration::from_millis(self.millis)).await;
        run.context().count();
        Ok(())
    }
}
