use crate::text::say;
use indicatif::{ProgressBar, ProgressStyle};
use job_worker::parallel::Progress;
use std::io::{IsTerminal, stderr};
use std::time::{Duration, Instant};

/// How often a line is printed where there is no terminal.
const EACH: Duration = Duration::from_secs(5);

/// A bar, if standard error is a terminal.
pub(crate) fn bar() -> Option<ProgressBar> {
    let style = ProgressStyle::with_template("{wide_bar} {pos}/{len} files, {per_sec}, {eta} left{msg}");
    let style = style.unwrap_or_else(|_| ProgressStyle::default_bar());
    stderr()
        .is_terminal()
        .then(|| ProgressBar::no_length().with_style(style))
}

/// Shows how far it has come: in the bar, or without one by a line now and then.
pub(crate) fn show(bar: Option<ProgressBar>) -> impl FnMut(&Progress) + Send {
    let mut last = Instant::now();
    move |progress| match &bar {
        Some(bar) => update(bar, progress),
        None if last.elapsed() >= EACH => {
            last = Instant::now();
            let total = progress
                .total
                .map_or_else(String::new, |total| format!(" of {total}"));
            say(&format!(
                "{}{total} files: {}",
                progress.counts.items(),
                progress.counts
            ));
        }
        None => {}
    }
}

fn update(bar: &ProgressBar, progress: &Progress) {
    let done = progress.counts.items();
    let failed = progress.counts.failed + progress.counts.panicked;
    if let Some(total) = progress.total {
        bar.set_length(total as u64);
    }
    if failed > 0 {
        bar.set_message(format!(", {failed} failed"));
    }
    bar.set_position(done);
    if progress.total == usize::try_from(done).ok() {
        bar.finish();
    }
}
