//! How far an import has come, shown where a person looks on.

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use std::io::{IsTerminal, stderr};
use std::path::Path;

/// A bar on a terminal's stderr; elsewhere nothing.
pub(super) struct Reading {
    bar: ProgressBar,
}

impl Reading {
    pub(super) fn new(source: &Path, is_quiet: bool) -> Self {
        let is_shown = !is_quiet && stderr().is_terminal();
        let target = if is_shown { ProgressDrawTarget::stderr() } else { ProgressDrawTarget::hidden() };
        // How much a folder or a pipe has is not known before it was read.
        let length =
            std::fs::metadata(source).ok().filter(|metadata| metadata.is_file()).map(|file| file.len());
        let bar = ProgressBar::with_draw_target(length, target);
        let template = match length {
            Some(_) => "importing {bar:40} {bytes} of {total_bytes} ({eta})",
            None => "{spinner} importing {bytes} {elapsed}",
        };
        if let Ok(style) = ProgressStyle::with_template(template) {
            bar.set_style(style);
        }
        Self { bar }
    }

    pub(super) fn advance(&self, bytes: u64) {
        self.bar.inc(bytes);
    }

    pub(super) fn end(&self) {
        self.bar.finish_and_clear();
    }
}
