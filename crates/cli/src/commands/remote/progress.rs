//! That something is being waited for, shown where a person looks on.

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use std::io::{IsTerminal, stderr};
use std::time::Duration;

/// A line that says what is waited for and for how long, and is gone when the wait is.
pub(super) struct Waiting {
    bar: ProgressBar,
}

/// Waits shorter than this are not spoken of.
const QUIET: Duration = Duration::from_millis(400);

impl Waiting {
    /// On a terminal's stderr, unless `is_quiet`; elsewhere nothing is shown.
    pub(super) fn new(is_quiet: bool) -> Self {
        let is_shown = !is_quiet && stderr().is_terminal();
        let target = if is_shown { ProgressDrawTarget::stderr() } else { ProgressDrawTarget::hidden() };
        let bar = ProgressBar::with_draw_target(None, target);
        if let Ok(style) = ProgressStyle::with_template("{spinner} {msg} {elapsed}") {
            bar.set_style(style);
        }
        Self { bar }
    }

    pub(super) fn say(&self, what: String) {
        self.bar.set_message(what);
    }

    /// Shows it from a moment on.
    pub(super) async fn begin(&self) {
        tokio::time::sleep(QUIET).await;
        self.bar.enable_steady_tick(Duration::from_millis(120));
        std::future::pending::<()>().await;
    }

    /// Writes without being written over.
    pub(super) fn aside<T>(&self, write: impl FnOnce() -> T) -> T {
        self.bar.suspend(write)
    }

    pub(super) fn end(&self) {
        self.bar.finish_and_clear();
    }
}

/// Bytes on their way, shown as a bar that is gone when they are there.
pub(super) struct Transfer {
    bar: ProgressBar,
}

impl Transfer {
    /// On a terminal's stderr, unless `is_quiet`; elsewhere nothing is shown.
    pub(super) fn new(what: &str, size_bytes: u64, is_quiet: bool) -> Self {
        let is_shown = !is_quiet && stderr().is_terminal();
        let target = if is_shown { ProgressDrawTarget::stderr() } else { ProgressDrawTarget::hidden() };
        let bar = ProgressBar::with_draw_target(Some(size_bytes), target);
        let template = "{msg} [{bar:30}] {bytes}/{total_bytes} {bytes_per_sec}";
        if let Ok(style) = ProgressStyle::with_template(template) {
            bar.set_style(style);
        }
        bar.set_message(super::table::one_line(what));
        Self { bar }
    }

    /// For what has a length that nobody knows beforehand.
    pub(super) fn unmeasured(what: &str, is_quiet: bool) -> Self {
        let transfer = Self::new(what, 0, is_quiet);
        transfer.bar.unset_length();
        if let Ok(style) = ProgressStyle::with_template("{msg} {bytes} {bytes_per_sec}") {
            transfer.bar.set_style(style);
        }
        transfer
    }

    /// Called with the bytes that went through since the last call.
    pub(super) fn counter(&self) -> cofferdam_client::Progress {
        let bar = self.bar.clone();
        Box::new(move |bytes| bar.inc(bytes))
    }

    pub(super) fn end(&self) {
        self.bar.finish_and_clear();
    }
}
