//! The terminal of a job: its size, and the handle by which whoever owns the real one tells of changes.

use tokio::sync::watch;

/// The size of a terminal, in characters.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct WindowSize {
    pub rows: u16,
    pub columns: u16,
}

/// That a job wants a terminal. It follows its [`Resizer`], if that is kept.
#[derive(Debug)]
pub struct Terminal {
    sizes: watch::Receiver<WindowSize>,
}

/// Tells a job's terminal its new size.
#[derive(Debug)]
pub struct Resizer {
    sizes: watch::Sender<WindowSize>,
}

/// A terminal that starts at `size`.
pub fn terminal(size: WindowSize) -> (Resizer, Terminal) {
    let (sender, receiver) = watch::channel(size);
    (Resizer { sizes: sender }, Terminal { sizes: receiver })
}

impl Resizer {
    /// Sizes that follow each other quickly may be told as the last one only.
    pub fn resize(&self, size: WindowSize) {
        self.sizes.send_replace(size);
    }
}

impl Terminal {
    pub fn size(&self) -> WindowSize {
        *self.sizes.borrow()
    }

    /// Waits for the next size; for ever when the resizer is gone.
    pub(crate) async fn next_size(&mut self) -> WindowSize {
        match self.sizes.changed().await {
            Ok(()) => *self.sizes.borrow_and_update(),
            Err(_) => std::future::pending().await,
        }
    }
}
