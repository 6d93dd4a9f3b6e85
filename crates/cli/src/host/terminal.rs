//! The caller's own terminal: raw mode while a job has one, and its size.

use cofferdam_worker::{Resizer, WindowSize};
use rustix::termios::{OptionalActions, Termios, tcgetattr, tcgetwinsize, tcsetattr};
use std::io::{self, IsTerminal, stdin, stdout};
use tokio::signal::unix::{SignalKind, signal};

/// What a terminal of unknown size is taken for.
const FALLBACK: WindowSize = WindowSize { rows: 24, columns: 80 };

/// The size of the terminal on stdout, or else on stdin.
pub(crate) fn window_size() -> WindowSize {
    let size = tcgetwinsize(stdout()).or_else(|_| tcgetwinsize(stdin()));
    match size {
        Ok(size) if size.ws_row > 0 && size.ws_col > 0 => {
            WindowSize { rows: size.ws_row, columns: size.ws_col }
        }
        _ => FALLBACK,
    }
}

/// Tells the job's terminal of every change of ours, for as long as it is polled.
pub(crate) async fn follow_size(resizer: Option<Resizer>) {
    let Some(resizer) = resizer else { return std::future::pending().await };
    let Ok(mut changes) = signal(SignalKind::window_change()) else { return std::future::pending().await };
    while changes.recv().await.is_some() {
        resizer.resize(window_size());
    }
}

/// The terminal on stdin in raw mode: every key goes to the job. Dropping it restores what was before.
pub(crate) struct RawMode {
    before: Termios,
}

impl RawMode {
    /// `None` where stdin is no terminal.
    pub(crate) fn enter() -> io::Result<Option<Self>> {
        if !stdin().is_terminal() {
            return Ok(None);
        }
        let before = tcgetattr(stdin())?;
        restore_on_panic(before.clone());
        let mut raw = before.clone();
        raw.make_raw();
        tcsetattr(stdin(), OptionalActions::Now, &raw)?;
        Ok(Some(Self { before }))
    }
}

/// A panic may end the process before anything is dropped.
fn restore_on_panic(before: Termios) {
    let usual = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |panic| {
        let _ = tcsetattr(stdin(), OptionalActions::Now, &before);
        usual(panic);
    }));
}

impl Drop for RawMode {
    fn drop(&mut self) {
        // A terminal that is gone has nothing to restore.
        let _ = tcsetattr(stdin(), OptionalActions::Now, &self.before);
    }
}
