//! The images of the worker in the same process, for control, which registers some of them.

use super::image::contract;
use async_trait::async_trait;
use cofferdam_api::{CheckedProfile, ImageCheck, ImageCheckRow, ImageCheckState, ImageFinding};
use cofferdam_backend::Backend;
use cofferdam_control::{ImageFailure, ImageWorker, InspectedImage};
use cofferdam_images::{
    CheckRow, CheckState, Digest, Finding, ImageError, ImageName, ImageRef, Lease, Profile, Store, scan,
};
use cofferdam_worker::JobError;
use std::collections::BTreeSet;
use std::sync::Arc;
use tokio::sync::Semaphore;

/// A check reads all files of an image, and starts what the image has: one at a time, so that they are not in the way of
/// jobs.
const AT_ONCE: usize = 1;

/// Of a path in an image, which its maker has chosen.
const MAX_PLACE: usize = 256;

/// Tries images of the store in sandboxes of the native backend.
#[derive(Debug)]
pub(super) struct LocalImages {
    store: Store,
    backend: Arc<dyn Backend>,
    turns: Semaphore,
}

impl LocalImages {
    pub(super) fn new(store: Store, backend: Arc<dyn Backend>) -> Self {
        Self { store, backend, turns: Semaphore::new(AT_ONCE) }
    }

    /// In use until it is dropped, so that nobody removes its layers meanwhile.
    async fn open(&self, wanted: ImageRef) -> Result<Arc<Lease>, ImageFailure> {
        let store = self.store.clone();
        match tokio::task::spawn_blocking(move || store.open(&wanted)).await {
            Ok(Ok(lease)) => Ok(Arc::new(lease)),
            Ok(Err(ImageError::NotFound { .. })) => Err(ImageFailure::NotThere),
            Ok(Err(error)) => Err(ImageFailure::Failed(error.to_string())),
            Err(error) => Err(ImageFailure::Failed(error.to_string())),
        }
    }
}

#[async_trait]
impl ImageWorker for LocalImages {
    async fn inspect(
        &self,
        name: &str,
        digest: Option<&str>,
        profiles: &[String],
    ) -> Result<InspectedImage, ImageFailure> {
        let called = ImageName::parse("name", name)?;
        let wanted = match digest {
            Some(digest) => ImageRef::Pinned(Digest::parse("digest", digest)?),
            None => ImageRef::Name(called.clone()),
        };
        let known = profiles.iter().map(|profile| Profile::by_name("profiles", profile));
        let known: Vec<_> = known.collect::<Result<_, _>>()?;
        let lease = self.open(wanted).await?;
        let _turn = self.turns.acquire().await.map_err(|error| ImageFailure::Failed(error.to_string()))?;
        let mut checked = Vec::new();
        for profile in &known {
            let rows = contract(&*self.backend, &lease, profile).await;
            let rows = rows.map_err(|error: JobError| ImageFailure::Failed(error.to_string()))?;
            let passed = rows.iter().all(|row| row.state == CheckState::Ok);
            let checks = rows.into_iter().map(row).collect();
            checked.push(CheckedProfile { profile: profile.name.clone(), passed, checks });
        }
        let searched = Arc::clone(&lease);
        let found = tokio::task::spawn_blocking(move || scan(&searched)).await;
        let found = match found {
            Ok(Ok(found)) => found,
            Ok(Err(error)) => return Err(ImageFailure::Failed(error.to_string())),
            Err(error) => return Err(ImageFailure::Failed(error.to_string())),
        };
        let credentials: Vec<_> = found.into_iter().map(finding).collect();
        let passed = credentials.is_empty() && checked.iter().all(|profile| profile.passed);
        let capabilities: BTreeSet<String> = known.into_iter().flat_map(|known| known.capabilities).collect();
        let digest = lease.image.id.to_string();
        Ok(InspectedImage {
            name: called.to_string(),
            capabilities: capabilities.into_iter().collect(),
            check: ImageCheck { digest, passed, profiles: checked, credentials },
        })
    }

    async fn pin(&self, keeper: &str, digest: &str) -> Result<(), ImageFailure> {
        let digest = Digest::parse("digest", digest)?;
        let (store, keeper) = (self.store.clone(), keeper.to_owned());
        blocking(move || store.pin(&keeper, digest)).await?;
        // It may have gone since it was looked at; from here on it cannot.
        self.open(ImageRef::Pinned(digest)).await.map(drop)
    }

    async fn pin_only(&self, keeper: &str, digests: Vec<String>) -> Result<(), ImageFailure> {
        let digests: Vec<_> =
            digests.iter().map(|digest| Digest::parse("digest", digest)).collect::<Result<_, _>>()?;
        let (store, keeper) = (self.store.clone(), keeper.to_owned());
        blocking(move || store.pin_only(&keeper, &digests)).await
    }
}

async fn blocking(
    work: impl FnOnce() -> cofferdam_images::Result<()> + Send + 'static,
) -> Result<(), ImageFailure> {
    let done = tokio::task::spawn_blocking(work).await;
    let failed = |error: &dyn std::fmt::Display| ImageFailure::Failed(error.to_string());
    done.map_err(|error| failed(&error))?.map_err(|error| failed(&error))
}

fn row(row: CheckRow) -> ImageCheckRow {
    let CheckRow { name, state, detail } = row;
    let state = match state {
        CheckState::Ok => ImageCheckState::Ok,
        CheckState::Missing => ImageCheckState::Missing,
        CheckState::Failed => ImageCheckState::Failed,
    };
    ImageCheckRow { name, state, detail }
}

fn finding(finding: Finding) -> ImageFinding {
    let Finding { place, layer, what } = finding;
    let place = place.chars().take(MAX_PLACE).collect();
    ImageFinding { place, layer: layer.map(|layer| layer as u64), what: what.to_owned() }
}
