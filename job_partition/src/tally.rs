use crate::{FailedRow, Failures, KeyValue};
use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// What the threads of a run have counted.
#[derive(Debug, Default)]
pub(crate) struct Tally {
    pub(crate) rows: AtomicU64,
    pub(crate) batches: AtomicU64,
    pub(crate) retries: AtomicU64,
    failures: Mutex<HashMap<KeyValue, String>>,
    /// Why the run is held up.
    throttled: Mutex<Option<String>>,
    is_throttled: AtomicBool,
}

impl Tally {
    pub(crate) fn rows(&self) -> u64 {
        self.rows.load(Ordering::Relaxed)
    }

    pub(crate) fn committed(&self, rows: usize) {
        self.rows.fetch_add(rows as u64, Ordering::Relaxed);
        self.batches.fetch_add(1, Ordering::Relaxed);
    }

    pub(crate) fn retried(&self) {
        self.retries.fetch_add(1, Ordering::Relaxed);
    }

    /// Notes a row that failed; says whether the limit allows one more.
    pub(crate) fn failed(&self, key: KeyValue, error: String, limit: Failures) -> bool {
        log::error!("gatun partition: row {key} failed: {error}");
        let mut failures = self.failures();
        failures.insert(key, error);
        limit.allows(failures.len() as u64, self.rows())
    }

    pub(crate) fn has_failed(&self, key: &KeyValue) -> bool {
        self.failures().contains_key(key)
    }

    pub(crate) fn failures_count(&self) -> usize {
        self.failures().len()
    }

    pub(crate) fn failed_rows(&self) -> Vec<FailedRow> {
        let rows = self.failures();
        let mut rows: Vec<FailedRow> = rows
            .iter()
            .map(|(key, error)| FailedRow {
                key: key.clone(),
                error: error.clone(),
            })
            .collect();
        rows.sort_by_cached_key(|row| (row.key.place(), row.key.to_string()));
        rows
    }

    /// Shows why the run waits, once for each reason; `None` when it goes on.
    pub(crate) fn throttle(&self, reason: Option<&str>) {
        if reason.is_none() && !self.is_throttled.load(Ordering::Relaxed) {
            return;
        }
        let mut throttled = self.throttled.lock().unwrap_or_else(PoisonError::into_inner);
        if throttled.as_deref() != reason {
            match reason {
                Some(reason) => log::info!("gatun partition: throttled: {reason}"),
                None => log::info!("gatun partition: throttled no more"),
            }
            *throttled = reason.map(str::to_owned);
            self.is_throttled.store(reason.is_some(), Ordering::Relaxed);
        }
    }

    pub(crate) fn throttled(&self) -> Option<String> {
        self.throttled
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clone()
    }

    fn failures(&self) -> MutexGuard<'_, HashMap<KeyValue, String>> {
        self.failures.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
