//! One image, from its reference to the store.

use crate::client::{Client, last_cause, unreachable};
use crate::{Credentials, PullError, Reference, Result};
use cofferdam_images::{
    Descriptor, Digest, Download, ImageConfig, ImageError, ImageName, Import, ImportLimits, Imported, Index,
    MAX_JSON_BYTES, Manifest, Store, is_index,
};
use reqwest::header::{CONTENT_RANGE, CONTENT_TYPE};
use reqwest::{Response, StatusCode};
use std::time::Duration;

/// How often a blob may be cut without a byte in between.
pub(crate) const MAX_CUTS: u32 = 5;

/// The first wait after a cut; each further one is twice as long.
pub(crate) const FIRST_WAIT: Duration = Duration::from_millis(200);

/// An index may name another one. More than that is a loop.
const MAX_INDEXES: usize = 4;

/// What is to be pulled, and by whom.
#[derive(Debug, Clone)]
pub struct Pull {
    pub reference: Reference,
    /// What it will be called in the store.
    pub name: ImageName,
    pub credentials: Option<Credentials>,
    /// Whether a registry elsewhere is spoken to without TLS; one of this machine always is.
    pub plain_http: bool,
    pub limits: ImportLimits,
}

/// What a pull tells while it goes on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Progress {
    /// How many bytes there are to get, and how many of them are here from before.
    Begin {
        total: u64,
        here: u64,
    },
    Bytes(u64),
    /// All is here, and is being unpacked.
    Unpacking,
}

/// Gets an image and takes it in. What the store has already is not got again.
pub async fn pull(store: &Store, pull: &Pull, progress: &(dyn Fn(Progress) + Sync)) -> Result<Imported> {
    store.sweep_downloads()?;
    let mut client = Client::new(pull.reference.clone(), pull.credentials.clone(), pull.plain_http)?;
    let found = find(&mut client, pull).await?;
    let config_bytes = small_blob(&mut client, pull, &found.manifest.config).await?;
    let config = ImageConfig::parse(&config_bytes)?;
    if config.rootfs.diff_ids.len() != found.manifest.layers.len() {
        let (layers, diff_ids) = (found.manifest.layers.len(), config.rootfs.diff_ids.len());
        let why = format!("its manifest has {layers} layers and its configuration {diff_ids}");
        return Err(refused(pull, "the image", why));
    }
    let mut missing: Vec<&Descriptor> = Vec::new();
    for (layer, diff_id) in found.manifest.layers.iter().zip(&config.rootfs.diff_ids) {
        let is_known = missing.iter().any(|known| known.digest == layer.digest);
        if !is_known && !store.has_layer(*diff_id)? {
            missing.push(layer);
        }
    }
    let total = missing.iter().map(|layer| layer.size).fold(0, u64::saturating_add);
    if total > pull.limits.bytes {
        return Err(ImageError::Limit { what: "bytes", max: pull.limits.bytes, option: "--max-size" }.into());
    }
    let mut downloads = Vec::with_capacity(missing.len());
    for layer in &missing {
        downloads.push(store.download(layer.digest)?);
    }
    let here = downloads.iter().map(Download::bytes).sum();
    progress(Progress::Begin { total, here });
    for (layer, download) in missing.iter().zip(&mut downloads) {
        get(&mut client, pull, layer, download, progress).await?;
    }
    progress(Progress::Unpacking);
    let staging = store.layout(&found.manifest_bytes, &config_bytes, downloads)?;
    let import = Import { source: staging.path(), name: &pull.name, limits: pull.limits, progress: &|_| {} };
    Ok(store.import(&import)?)
}

struct Found {
    manifest_bytes: Vec<u8>,
    manifest: Manifest,
}

/// The manifest for this machine, by way of indexes.
async fn find(client: &mut Client, pull: &Pull) -> Result<Found> {
    let (mut wanted, mut promised) = (pull.reference.wanted(), pull.reference.digest);
    for _ in 0..MAX_INDEXES {
        let what = format!("the manifest {wanted}");
        let answer = client.manifest(&wanted).await?;
        let media_type = answer.headers().get(CONTENT_TYPE).and_then(|value| value.to_str().ok());
        let media_type = media_type.unwrap_or_default().to_owned();
        let bytes = body(pull, &what, answer).await?;
        verify(&what, promised, &bytes)?;
        if !is_index(&media_type) {
            let manifest = Manifest::parse(&what, &bytes)?;
            return Ok(Found { manifest_bytes: bytes, manifest });
        }
        let chosen = Index::parse(&what, &bytes)?.choose()?;
        (wanted, promised) = (chosen.digest.to_string(), Some(chosen.digest));
    }
    Err(refused(pull, "the manifest", "it leads from one index to the next".to_owned()))
}

async fn small_blob(client: &mut Client, pull: &Pull, blob: &Descriptor) -> Result<Vec<u8>> {
    let what = format!("the configuration {}", blob.digest);
    let answer = client.blob(&blob.digest.to_string(), 0).await?;
    let bytes = body(pull, &what, answer).await?;
    verify(&what, Some(blob.digest), &bytes)?;
    Ok(bytes)
}

fn verify(what: &str, promised: Option<Digest>, bytes: &[u8]) -> Result<()> {
    let found = Digest::of(bytes);
    match promised {
        Some(expected) if expected != found => {
            Err(ImageError::Digest { what: what.to_owned(), expected, found }.into())
        }
        _ => Ok(()),
    }
}

/// An answer that is small, whole.
async fn body(pull: &Pull, what: &str, mut answer: Response) -> Result<Vec<u8>> {
    let mut bytes = Vec::new();
    while let Some(piece) = answer.chunk().await.map_err(|error| unreachable(&pull.reference, &error))? {
        bytes.extend_from_slice(&piece);
        if bytes.len() as u64 > MAX_JSON_BYTES {
            return Err(refused(pull, what, "it is larger than 4 MiB, which none is".to_owned()));
        }
    }
    Ok(bytes)
}

/// Gets a blob from where it was cut, as often as it takes, and checks it.
async fn get(
    client: &mut Client,
    pull: &Pull,
    blob: &Descriptor,
    download: &mut Download,
    progress: &(dyn Fn(Progress) + Sync),
) -> Result<()> {
    let what = format!("the layer {}", blob.digest);
    let (mut cuts, mut wait) = (0, FIRST_WAIT);
    if download.bytes() > blob.size {
        download.restart()?;
    }
    while download.bytes() < blob.size {
        let before = download.bytes();
        let Err(why) = some(client, pull, blob, download, progress).await? else { continue };
        if download.bytes() > before {
            (cuts, wait) = (0, FIRST_WAIT);
        }
        cuts += 1;
        if cuts >= MAX_CUTS {
            return Err(PullError::Cut { what, times: cuts, why });
        }
        tokio::time::sleep(wait).await;
        wait *= 2;
    }
    Ok(download.verify()?)
}

/// One request for what is missing. The inner error is a cut, after which another one may go on.
async fn some(
    client: &mut Client,
    pull: &Pull,
    blob: &Descriptor,
    download: &mut Download,
    progress: &(dyn Fn(Progress) + Sync),
) -> Result<std::result::Result<(), String>> {
    let from = download.bytes();
    let mut answer = match client.blob(&blob.digest.to_string(), from).await {
        Err(PullError::Unreachable { why, .. }) => return Ok(Err(why)),
        Err(PullError::Status { status, .. }) if status >= 500 => {
            return Ok(Err(format!("the registry answered {status}")));
        }
        other => other?,
    };
    if from > 0 && !begins_at(&answer, from) {
        // A registry that does not know of ranges sends it from its beginning.
        download.restart()?;
    }
    loop {
        match answer.chunk().await {
            Ok(Some(piece)) => {
                if download.bytes() + piece.len() as u64 > blob.size {
                    download.restart()?;
                    let why = format!("it is larger than the {} bytes that were promised", blob.size);
                    return Err(refused(pull, &format!("the layer {}", blob.digest), why));
                }
                download.append(&piece)?;
                progress(Progress::Bytes(piece.len() as u64));
            }
            Ok(None) if download.bytes() == blob.size => return Ok(Ok(())),
            Ok(None) => return Ok(Err("it ended early".to_owned())),
            Err(error) => return Ok(Err(last_cause(&error))),
        }
    }
}

/// Whether an answer goes on from there.
pub(crate) fn begins_at(answer: &Response, from: u64) -> bool {
    let range = answer.headers().get(CONTENT_RANGE).and_then(|range| range.to_str().ok());
    answer.status() == StatusCode::PARTIAL_CONTENT
        && range.is_some_and(|range| {
            range.strip_prefix("bytes ").and_then(|range| range.split('-').next()) == Some(&from.to_string())
        })
}

fn refused(pull: &Pull, what: &str, why: String) -> PullError {
    PullError::Refused { host: pull.reference.host.clone(), what: what.to_owned(), why }
}
