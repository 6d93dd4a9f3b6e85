//! The way to a worker's images, for those who register them.

use async_trait::async_trait;
use cofferdam_api::ImageCheck;
use cofferdam_core::InvalidValue;

/// An image of the store, and what trying it has shown.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InspectedImage {
    /// The whole name, with its tag.
    pub name: String,
    /// What the profiles say that it can do.
    pub capabilities: Vec<String>,
    pub check: ImageCheck,
}

/// Why an image could not be tried.
#[derive(Debug)]
pub enum ImageFailure {
    /// The request names something that cannot be.
    Invalid(InvalidValue),
    /// The store has no such image.
    NotThere,
    /// For the operator; nobody else is told.
    Failed(String),
}

impl From<InvalidValue> for ImageFailure {
    fn from(error: InvalidValue) -> Self {
        Self::Invalid(error)
    }
}

/// A worker that has images.
#[async_trait]
pub trait ImageWorker: Send + Sync {
    /// Finds an image by its name, or where one is given by its digest, runs the contract of each profile in a sandbox
    /// on it, and looks for credentials in it.
    async fn inspect(
        &self,
        name: &str,
        digest: Option<&str>,
        profiles: &[String],
    ) -> Result<InspectedImage, ImageFailure>;

    /// Keeps an image in the store for a service, whatever becomes of its names.
    async fn pin(&self, _keeper: &str, _digest: &str) -> Result<(), ImageFailure> {
        Ok(())
    }

    /// Keeps these for the service, and lets go of all others.
    async fn pin_only(&self, _keeper: &str, _digests: Vec<String>) -> Result<(), ImageFailure> {
        Ok(())
    }
}
