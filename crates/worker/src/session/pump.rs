//! What a cell tells, on its way to whoever takes it. A cell tells without waiting; what nobody would keep is not kept
//! here either.

use super::spec::{Shown, StepOutput};
use crate::output::OutputStream;
use cofferdam_core::OUTPUT_KEPT_BYTES;
use cofferdam_kernels::{CellSink, RichResult, Stream};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::sync::Notify;

/// Who collects output to pass it on in larger pieces is asked again after this long.
const PAUSE: Duration = Duration::from_millis(100);

enum Piece {
    Output(OutputStream, Vec<u8>),
    Shown(Shown),
}

#[derive(Default)]
struct State {
    waiting: Vec<Piece>,
    taken: [usize; 2],
}

#[derive(Clone, Default)]
pub(super) struct Pump {
    state: Arc<Mutex<State>>,
    news: Arc<Notify>,
}

impl Pump {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Moves what there is, and says whether there was anything.
    pub(super) fn drain(&self, output: &mut dyn StepOutput) -> bool {
        let waiting = std::mem::take(&mut self.state().waiting);
        let is_some = !waiting.is_empty();
        for piece in waiting {
            match piece {
                Piece::Output(stream, bytes) => output.push(stream, &bytes),
                Piece::Shown(shown) => output.show(shown),
            }
        }
        is_some
    }

    /// Moves what comes, for as long as it is polled.
    pub(super) async fn forward(&self, output: &mut dyn StepOutput) {
        let mut is_owed = false;
        loop {
            if self.drain(output) {
                output.ready().await;
                is_owed = true;
            }
            match is_owed {
                false => self.news.notified().await,
                true => {
                    if tokio::time::timeout(PAUSE, self.news.notified()).await.is_err() {
                        output.ready().await;
                        is_owed = false;
                    }
                }
            }
        }
    }
}

impl CellSink for Pump {
    fn output(&mut self, stream: Stream, bytes: &[u8]) {
        let (at, stream) = match stream {
            Stream::Stdout => (0, OutputStream::Stdout),
            Stream::Stderr => (1, OutputStream::Stderr),
        };
        let mut state = self.state();
        // One byte more than is ever kept, so that it is known that there was more.
        let room = (OUTPUT_KEPT_BYTES + 1).saturating_sub(state.taken[at]).min(bytes.len());
        if room == 0 {
            return;
        }
        state.taken[at] += room;
        state.waiting.push(Piece::Output(stream, bytes[..room].to_vec()));
        drop(state);
        self.news.notify_one();
    }

    fn display(&mut self, result: RichResult) {
        let shown = Shown { kind: result.kind.as_str().to_owned(), data: result.data };
        self.state().waiting.push(Piece::Shown(shown));
        self.news.notify_one();
    }
}
