//! The log is the process's, and all suites run in one process.

use log::{Level, LevelFilter, Log, Metadata, Record};
use std::sync::Mutex;

static WARNINGS: Mutex<Vec<String>> = Mutex::new(Vec::new());

struct Warnings;

impl Log for Warnings {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        metadata.level() == Level::Warn
    }

    fn log(&self, record: &Record<'_>) {
        if self.enabled(record.metadata()) {
            WARNINGS.lock().unwrap().push(record.args().to_string());
        }
    }

    fn flush(&self) {}
}

/// One of the suites is the first; the others find it done.
pub(crate) fn listen() {
    if log::set_logger(&Warnings).is_ok() {
        log::set_max_level(LevelFilter::Warn);
    }
}

/// How many warnings had this in them.
pub(crate) fn count(part: &str) -> usize {
    let warnings = WARNINGS.lock().unwrap();
    warnings.iter().filter(|text| text.contains(part)).count()
}
