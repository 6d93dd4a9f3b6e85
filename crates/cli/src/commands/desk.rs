//! A job's way to artifacts: control's, behind the trait that a worker knows.

use async_trait::async_trait;
use cofferdam_control::ArtifactDesk;
use cofferdam_worker::artifacts::{ArtifactPath, ArtifactStore};
use std::io;
use std::sync::Arc;
use tokio::io::AsyncRead;

/// Passes what a job leaves on from the worker's trait to control's.
pub(super) struct Desk(pub(super) Arc<dyn ArtifactDesk>);

#[async_trait]
impl ArtifactStore for Desk {
    async fn put(
        &mut self,
        path: &ArtifactPath,
        content: &mut (dyn AsyncRead + Send + Sync + Unpin),
    ) -> io::Result<u64> {
        self.0.keep(&path.to_string(), content).await
    }
}
