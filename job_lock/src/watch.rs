use std::time::{Duration, Instant};

/// Logs at its end, also in a panic, if that came late.
pub(crate) struct Watch<'a> {
    name: &'a str,
    start: Instant,
    limit: Option<Duration>,
}

impl<'a> Watch<'a> {
    pub(crate) fn new(name: &'a str, limit: Option<Duration>) -> Self {
        Self {
            name,
            start: Instant::now(),
            limit,
        }
    }
}

impl Drop for Watch<'_> {
    fn drop(&mut self) {
        let held = self.start.elapsed();
        if let Some(limit) = self.limit.filter(|limit| held > *limit) {
            log::warn!(
                "lock {:?} was held for {held:?}, longer than {limit:?}",
                self.name
            );
        }
    }
}
