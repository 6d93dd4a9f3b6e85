//! One line on stderr that says where a long run is, and nothing at all when nobody watches.

use std::io::{IsTerminal, Write};
use std::time::{Duration, Instant};

/// Redrawing costs a write to a terminal; ten a second is smooth and cheap.
const REDRAW: Duration = Duration::from_millis(100);

#[derive(Debug)]
pub(crate) struct Progress {
    watched: bool,
    drawn: Option<Instant>,
}

impl Progress {
    pub(crate) fn new() -> Self {
        Self { watched: std::io::stderr().is_terminal(), drawn: None }
    }

    /// Called between samples, never within one.
    pub(crate) fn at(&mut self, what: &str, done: usize, of: usize) {
        if self.drawn.is_some_and(|drawn| drawn.elapsed() < REDRAW) {
            return;
        }
        self.show(&format!("{what}  {done}/{of}"));
    }

    pub(crate) fn show(&mut self, text: &str) {
        if self.watched {
            let _ = write!(std::io::stderr(), "\r\x1b[K{text}");
            self.drawn = Some(Instant::now());
        }
    }

    pub(crate) fn clear(&mut self) {
        if self.drawn.take().is_some() {
            let _ = write!(std::io::stderr(), "\r\x1b[K");
        }
    }
}
