//! OCI image layouts, and the manifests in them, which registries have as well.

use super::{Blobs, FoundImage, found, parse_json, read_json, verify};
use crate::config::{ARCHITECTURE, OS};
use crate::{Digest, ImageError, Result};
use serde::Deserialize;

pub(super) const LAYOUT: &str = "oci-layout";
pub(super) const INDEX: &str = "index.json";

/// An index may name another one, for the platforms of one image. More than that is a loop.
const MAX_INDEXES: usize = 4;

/// Several manifests, one for each platform.
#[derive(Debug, Deserialize)]
pub struct Index {
    manifests: Vec<Descriptor>,
}

/// What something is named by.
#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Descriptor {
    #[serde(default)]
    pub media_type: String,
    pub digest: Digest,
    #[serde(default)]
    pub size: u64,
    platform: Option<Platform>,
}

#[derive(Debug, Clone, Deserialize)]
struct Platform {
    architecture: String,
    os: String,
}

/// What an image is made of.
#[derive(Debug, Deserialize)]
pub struct Manifest {
    pub config: Descriptor,
    /// The lowest first.
    pub layers: Vec<Descriptor>,
}

impl Index {
    pub fn parse(name: &str, bytes: &[u8]) -> Result<Self> {
        parse_json(name, bytes)
    }

    /// The manifest for this machine.
    pub fn choose(&self) -> Result<Descriptor> {
        choose(self)
    }
}

impl Descriptor {
    /// Whether it names an index rather than a manifest.
    pub fn is_index(&self) -> bool {
        is_index(&self.media_type)
    }
}

/// Whether something of that type is an index rather than a manifest.
pub fn is_index(media_type: &str) -> bool {
    media_type.contains("index") || media_type.contains("manifest.list")
}

impl Manifest {
    pub fn parse(name: &str, bytes: &[u8]) -> Result<Self> {
        let manifest: Self = parse_json(name, bytes)?;
        if let Some(layer) = manifest.layers.iter().find(|layer| layer.media_type.contains("encrypted")) {
            let why = "it is encrypted; decrypt the image first";
            return Err(ImageError::refused(format!("the layer {}", layer.digest), why));
        }
        Ok(manifest)
    }
}

pub(super) fn find(blobs: &dyn Blobs) -> Result<FoundImage> {
    let mut index: Index = parse_json(INDEX, &read_json(blobs, INDEX)?)?;
    for _ in 0..MAX_INDEXES {
        let chosen = choose(&index)?;
        let (name, bytes) = blob(blobs, chosen.digest)?;
        if chosen.is_index() {
            index = parse_json(&name, &bytes)?;
            continue;
        }
        let manifest = Manifest::parse(&name, &bytes)?;
        let (_, config) = blob(blobs, manifest.config.digest)?;
        return found(
            config,
            manifest.layers.iter().map(|layer| (path(layer.digest), Some(layer.digest))).collect(),
        );
    }
    Err(ImageError::refused(INDEX, "it leads from one index to the next"))
}

fn path(digest: Digest) -> String {
    format!("blobs/sha256/{}", digest.hex())
}

fn blob(blobs: &dyn Blobs, digest: Digest) -> Result<(String, Vec<u8>)> {
    let name = path(digest);
    let bytes = read_json(blobs, &name)?;
    verify(&name, digest, &bytes)?;
    Ok((name, bytes))
}

fn choose(index: &Index) -> Result<Descriptor> {
    let is_ours =
        |platform: &Platform| (platform.os.as_str(), platform.architecture.as_str()) == (OS, ARCHITECTURE);
    let fits = |descriptor: &&Descriptor| descriptor.platform.as_ref().is_none_or(is_ours);
    let mut fitting: Vec<&Descriptor> = index.manifests.iter().filter(fits).collect();
    // One that says its platform is meant before one that does not.
    if fitting.iter().any(|descriptor| descriptor.platform.is_some()) {
        fitting.retain(|descriptor| descriptor.platform.is_some());
    }
    match fitting[..] {
        [one] => Ok(one.clone()),
        [] => {
            let all: Vec<String> = index
                .manifests
                .iter()
                .filter_map(|descriptor| descriptor.platform.as_ref())
                .map(|platform| format!("{}/{}", platform.os, platform.architecture))
                .collect();
            let why = format!("it has no image for {OS}/{ARCHITECTURE}, only for {}", all.join(", "));
            Err(ImageError::refused(INDEX, why))
        }
        _ => Err(ImageError::refused(INDEX, "it has several images; save one of them alone")),
    }
}
