//! Verbs on images that are registered.

use crate::{Client, Result};
use cofferdam_api::{Image, ImageList, ImageRequest};
use reqwest::Method;
use std::time::Duration;

/// An image is tried before the answer comes, and others may be before it.
const PATIENCE: Duration = Duration::from_secs(600);

impl Client {
    /// Registers an image of the server's store, once, however often it is sent.
    pub async fn image_register(&self, request: &ImageRequest) -> Result<Image> {
        let call = self.call(Method::POST, &["v1", "images"]);
        call.body(request)?.once()?.wait(PATIENCE).json().await
    }

    /// The images that the tenant sees, the newest first; those of a profile, where one is given.
    pub async fn image_list(&self, profile: Option<&str>, cursor: Option<&str>) -> Result<ImageList> {
        let mut call = self.call(Method::GET, &["v1", "images"]);
        for (name, value) in [("profile", profile), ("cursor", cursor)] {
            if let Some(value) = value {
                call = call.query(name, value);
            }
        }
        call.json().await
    }

    pub async fn image_unregister(&self, id: &str) -> Result<()> {
        self.call(Method::DELETE, &["v1", "images", id]).gone().await
    }
}
