use crate::Progress;

/// A bar on the standard error.
#[cfg(feature = "progress")]
pub(crate) struct Bar(indicatif::ProgressBar);

#[cfg(feature = "progress")]
impl Bar {
    /// `None` where the standard error is no terminal.
    pub(crate) fn new() -> Option<Self> {
        use std::io::IsTerminal;
        std::io::stderr().is_terminal().then(|| {
            let bar = indicatif::ProgressBar::new(0);
            if let Ok(style) = indicatif::ProgressStyle::with_template("{bar:40} {percent:>3} %  {msg}") {
                bar.set_style(style);
            }
            Bar(bar)
        })
    }

    pub(crate) fn show(&self, progress: &Progress) {
        if let Some(remaining) = progress.remaining {
            self.0
                .set_length(self.0.length().unwrap_or(0).max(progress.rows + remaining));
            self.0
                .set_position(self.0.length().unwrap_or(0).saturating_sub(remaining));
        }
        self.0.set_message(progress.to_string());
    }
}

#[cfg(feature = "progress")]
impl Drop for Bar {
    fn drop(&mut self) {
        self.0.abandon();
    }
}

#[cfg(not(feature = "progress"))]
pub(crate) struct Bar;

#[cfg(not(feature = "progress"))]
impl Bar {
    pub(crate) fn new() -> Option<Self> {
        None
    }

    pub(crate) fn show(&self, _: &Progress) {}
}
