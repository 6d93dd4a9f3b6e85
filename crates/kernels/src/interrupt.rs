//! Asking a running cell to stop.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio::sync::Notify;

#[derive(Debug, Default)]
struct State {
    is_running: bool,
    is_asked: bool,
}

/// Interrupts the cell that runs, from anywhere. Where none runs, it does nothing.
#[derive(Debug, Clone, Default)]
pub struct Interrupter {
    shared: Arc<(Mutex<State>, Notify)>,
}

impl Interrupter {
    fn state(&self) -> MutexGuard<'_, State> {
        self.shared.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Asks; whether there was a cell to ask. How it ended is told by whoever runs it.
    pub async fn interrupt(&self) -> bool {
        let mut state = self.state();
        state.is_asked = state.is_running;
        if state.is_asked {
            self.shared.1.notify_one();
        }
        state.is_running
    }

    pub(crate) fn begin(&self) {
        *self.state() = State { is_running: true, is_asked: false };
    }

    pub(crate) fn end(&self) {
        *self.state() = State::default();
    }

    /// Returns when the running cell is asked to stop.
    pub(crate) async fn asked(&self) {
        loop {
            // One that was meant for the cell before may be left over.
            if std::mem::take(&mut self.state().is_asked) {
                return;
            }
            self.shared.1.notified().await;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    #[tokio::test]
    async fn only_the_cell_that_runs_is_asked() {
        let interrupter = Interrupter::default();
        assert!(!interrupter.interrupt().await);
        interrupter.begin();
        assert!(interrupter.clone().interrupt().await);
        interrupter.asked().await;
        // Asked for the first cell, and not taken by it.
        interrupter.interrupt().await;
        interrupter.end();
        interrupter.begin();
        let waited = tokio::time::timeout(Duration::from_millis(20), interrupter.asked()).await;
        assert!(waited.is_err(), "an interrupt reached the next cell");
    }
}
