//! What goes by while kept files are read: whoever reads them may be another process, and knows only that they ended.

use crate::session_worker::FileReader;
use crate::{ControlError, Result};
use cofferdam_artifacts::ArtifactError;
use std::io;
use std::pin::Pin;
use std::sync::{Arc, OnceLock};
use std::task::{Context, Poll};
use tokio::io::{AsyncRead, ReadBuf};

/// What was wrong with the bytes, if something was.
#[derive(Clone, Default)]
pub(super) struct Seen(Arc<OnceLock<String>>);

impl Seen {
    /// How it ended for who read: where the bytes were wrong, that is why.
    pub(super) fn judge<T>(&self, read: Result<T>) -> Result<T> {
        match (read, self.0.get()) {
            (Err(_), Some(why)) => Err(ControlError::Kept { why: why.clone() }),
            (read, _) => read,
        }
    }

    fn note(&self, error: &io::Error) {
        let inner = error.get_ref().and_then(|error| error.downcast_ref());
        if let Some(why @ (ArtifactError::Damaged(_) | ArtifactError::Missing)) = inner {
            let _ = self.0.set(why.to_string());
        }
    }
}

/// The same bytes, looked at on their way.
pub(super) fn watch_over(from: impl AsyncRead + Send + Sync + Unpin + 'static) -> (FileReader, Seen) {
    let seen = Seen::default();
    (Box::new(Watched { from, seen: seen.clone() }), seen)
}

struct Watched<R> {
    from: R,
    seen: Seen,
}

impl<R: AsyncRead + Unpin> AsyncRead for Watched<R> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let polled = Pin::new(&mut self.from).poll_read(cx, buf);
        if let Poll::Ready(Err(error)) = &polled {
            self.seen.note(error);
        }
        polled
    }
}
