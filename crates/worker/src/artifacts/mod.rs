//! Taking what a job left in its artifacts folder.
//!
//! Everything about it is hostile: names, depth, number, sizes, and that it changes while it is read. So the
//! walk is bounded, only plain files are taken, and every name is checked before anything on the host is
//! called so. What is not taken is listed with the reason.

mod capped;
mod host_folder;
mod path;
mod walk;

pub use host_folder::HostFolder;
pub use path::ArtifactPath;
pub(crate) use walk::{Collected, Known, collect, collect_new};

use cofferdam_backend::async_trait;
use std::io;
use tokio::io::AsyncRead;

/// Keeps the bytes of artifacts.
#[async_trait]
pub trait ArtifactStore: Send + Sync {
    /// Keeps one artifact, and says how many bytes it had. When reading fails, nothing of it is kept.
    async fn put(
        &mut self,
        path: &ArtifactPath,
        content: &mut (dyn AsyncRead + Send + Sync + Unpin),
    ) -> io::Result<u64>;
}
