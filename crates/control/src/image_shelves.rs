//! The workers that have images: the one in this process, or those elsewhere that are there. An image is on any of them.

use crate::image_worker::{ImageFailure, InspectedImage};
use crate::{Control, ControlError, Result, Worker};
use std::collections::BTreeSet;
use std::sync::Arc;

/// A worker, and which images it says that it has.
pub(crate) struct Shelf {
    pub(crate) worker: Arc<dyn Worker>,
    pub(crate) images: Option<BTreeSet<String>>,
}

impl Shelf {
    fn may_have(&self, digest: Option<&str>) -> bool {
        match (&self.images, digest) {
            (Some(images), Some(digest)) => images.contains(digest),
            _ => true,
        }
    }
}

impl Control {
    pub(crate) fn shelves(&self) -> Result<Vec<Shelf>> {
        if !self.parts.settings.backends.images {
            return unsupported("an operator may allow images (backends.images)");
        }
        let fleet = &self.parts.fleet;
        let mut shelves = fleet.shelves();
        shelves.retain(|shelf| shelf.worker.images().is_some());
        match (shelves.is_empty(), fleet.takes_others()) {
            (false, _) => Ok(shelves),
            (true, true) => Err(ControlError::Unavailable("no worker with images is there".to_owned())),
            (true, false) => unsupported("this server has no image store"),
        }
    }

    /// Has an image tried by the first worker that has it.
    pub(crate) async fn inspect_image(
        &self,
        name: &str,
        digest: Option<&str>,
        profiles: &[String],
    ) -> Result<std::result::Result<InspectedImage, ImageFailure>> {
        let mut failure = ImageFailure::NotThere;
        for shelf in self.shelves()?.iter().filter(|shelf| shelf.may_have(digest)) {
            let Some(images) = shelf.worker.images() else { continue };
            match images.inspect(name, digest, profiles).await {
                Err(ImageFailure::NotThere) => {}
                // Another may have it, and answer.
                Err(ImageFailure::Failed(why)) => failure = ImageFailure::Failed(why),
                done => return Ok(done),
            }
        }
        Ok(Err(failure))
    }

    /// Has an image kept by every worker that has it. One is enough: the others are told again, with all that is
    /// registered.
    pub(crate) async fn pin_image(&self, digest: &str) -> Result<std::result::Result<(), ImageFailure>> {
        let keeper = &self.parts.settings.node.name;
        let (mut is_kept, mut failure) = (false, ImageFailure::NotThere);
        for shelf in self.shelves()? {
            let Some(images) = shelf.worker.images() else { continue };
            match images.pin(keeper, digest).await {
                Ok(()) => is_kept = true,
                Err(ImageFailure::NotThere) => {}
                Err(other) => failure = other,
            }
        }
        Ok(if is_kept { Ok(()) } else { Err(failure) })
    }

    /// Has every store keep what is registered, and nothing else. One that fails is made up for at the next.
    pub(crate) async fn pin_registered(&self) {
        let Ok(shelves) = self.shelves() else { return };
        let _turn = self.parts.pins.lock().await;
        let digests = match self.parts.store.image_digests().await {
            Ok(digests) => digests,
            Err(error) => return not_pinned(&error.to_string()),
        };
        for shelf in shelves {
            let Some(images) = shelf.worker.images() else { continue };
            let pinned = images.pin_only(&self.parts.settings.node.name, digests.clone()).await;
            if let Err(ImageFailure::Failed(why)) = pinned {
                not_pinned(&why);
            }
        }
    }
}

fn not_pinned(why: &str) {
    tracing::warn!(error = why, "registered images could not be pinned in an image store");
}

fn unsupported<T>(why: &'static str) -> Result<T> {
    Err(ControlError::Unsupported { field: "images", why: why.into() })
}
