//! The images of a worker elsewhere, behind the trait that control knows.

use crate::call::{CallError, Peer};
use async_trait::async_trait;
use cofferdam_api::{ImageLook, ImageLooked, ImagePins};
use cofferdam_control::{ImageFailure, ImageWorker, InspectedImage};
use cofferdam_core::InvalidValue;
use reqwest::Method;
use serde::Serialize;
use serde_json::Value;
use std::time::{Duration, Instant};

/// The contracts of all profiles are tried in sandboxes, one after the other, and every file is read.
const LOOK: Duration = Duration::from_secs(900);

#[derive(Debug)]
pub(crate) struct HttpImages {
    id: String,
    peer: Peer,
    /// Whether its address may be used at all.
    is_allowed: bool,
}

impl HttpImages {
    pub(crate) fn new(id: &str, peer: Peer, is_allowed: bool) -> Self {
        Self { id: id.to_owned(), peer, is_allowed }
    }

    async fn call(&self, method: Method, path: &str, body: &impl Serialize) -> Result<Value, ImageFailure> {
        if !self.is_allowed {
            let why = format!("{} is not on loopback and has no TLS", self.peer.url);
            return Err(ImageFailure::Failed(why));
        }
        if !self.peer.breaker.allows(Instant::now()) {
            let why = format!("{} has failed too often just now", self.peer.url);
            return Err(ImageFailure::Failed(why));
        }
        let called = self.peer.call_within(LOOK, method, path, body).await;
        called.map_err(|error: CallError| ImageFailure::Failed(error.to_string()))
    }

    async fn keep(&self, keeper: &str, digests: Vec<String>, is_all: bool) -> Result<(), ImageFailure> {
        let (worker_id, keeper) = (self.id.clone(), keeper.to_owned());
        let pins = ImagePins { worker_id, keeper, digests, is_all };
        looked(self.call(Method::PUT, "/images/pins", &pins).await?).map(drop)
    }
}

#[async_trait]
impl ImageWorker for HttpImages {
    async fn inspect(
        &self,
        name: &str,
        digest: Option<&str>,
        profiles: &[String],
    ) -> Result<InspectedImage, ImageFailure> {
        let look = ImageLook {
            worker_id: self.id.clone(),
            name: name.to_owned(),
            digest: digest.map(str::to_owned),
            profiles: profiles.to_vec(),
        };
        let unread = || ImageFailure::Failed(format!("{} has not said what it found", self.peer.url));
        looked(self.call(Method::POST, "/images/look", &look).await?)?.ok_or_else(unread)
    }

    async fn pin(&self, keeper: &str, digest: &str) -> Result<(), ImageFailure> {
        self.keep(keeper, vec![digest.to_owned()], false).await
    }

    async fn pin_only(&self, keeper: &str, digests: Vec<String>) -> Result<(), ImageFailure> {
        self.keep(keeper, digests, true).await
    }
}

/// What a worker said; nothing where it has only done what it was asked.
fn looked(answer: Value) -> Result<Option<InspectedImage>, ImageFailure> {
    match serde_json::from_value(answer) {
        Ok(ImageLooked::Found { name, capabilities, check }) => {
            Ok(Some(InspectedImage { name, capabilities, check }))
        }
        Ok(ImageLooked::Done) => Ok(None),
        Ok(ImageLooked::NotThere) => Err(ImageFailure::NotThere),
        Ok(ImageLooked::Invalid { field, value, fix }) => {
            Err(ImageFailure::Invalid(InvalidValue { field, value, fix }))
        }
        Ok(ImageLooked::Failed { why }) => Err(ImageFailure::Failed(why)),
        Err(error) => Err(ImageFailure::Failed(format!("the worker's answer cannot be read: {error}"))),
    }
}
