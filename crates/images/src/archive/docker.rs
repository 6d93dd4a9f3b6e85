//! What `docker save` writes.

use super::{Blobs, FoundImage, found, parse_json, read_json, verify};
use crate::{Digest, ImageError, ImageName, Result};
use serde::Deserialize;

pub(super) const MANIFEST: &str = "manifest.json";

#[derive(Debug, Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Image {
    config: String,
    #[serde(default)]
    repo_tags: Option<Vec<String>>,
    layers: Vec<String>,
}

pub(super) fn find(blobs: &dyn Blobs, wanted: &ImageName) -> Result<FoundImage> {
    let manifest = read_json(blobs, MANIFEST)?;
    let images: Vec<Image> = parse_json(MANIFEST, &manifest)?;
    let image = choose(images, wanted)?;
    let config = read_json(blobs, &image.config)?;
    // The configuration's name is its digest; without that the image has no identity of its own.
    let hex = image.config.rsplit('/').next().unwrap_or_default().trim_end_matches(".json");
    verify(&image.config, Digest::parse(MANIFEST, &format!("sha256:{hex}"))?, &config)?;
    found(config, image.layers.into_iter().map(|name| (name, None)).collect())
}

fn choose(mut images: Vec<Image>, wanted: &ImageName) -> Result<Image> {
    if images.len() > 1 {
        let tags = |image: &Image| image.repo_tags.clone().unwrap_or_default();
        let named = images.iter().position(|image| tags(image).contains(&wanted.to_string()));
        let Some(i) = named else {
            let all: Vec<String> = images.iter().flat_map(tags).collect();
            let why = format!(
                "it has several images ({}); give one of these as --name, or save one",
                all.join(", ")
            );
            return Err(ImageError::refused("the archive", why));
        };
        return Ok(images.swap_remove(i));
    }
    images.pop().ok_or_else(|| ImageError::refused("the archive", "it has no image"))
}
