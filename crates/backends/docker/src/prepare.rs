//! An image with what a sandbox needs besides: the helper, a place for its files, a name for its user.
//!
//! A container with a read-only root takes no files, and a mount would show a path of the host and need one
//! there. So the helper becomes the last layer of an image of its own, made once for each image and each helper.

use crate::container::LABEL_SANDBOX;
use crate::daemon::{failed, status};
use crate::engine::Engine;
use crate::load;
use bollard::Docker;
use bollard::models::{ContainerConfig, ContainerCreateBody, ImageInspect};
use bollard::query_parameters::{
    CommitContainerOptions, DownloadFromContainerOptions, RemoveContainerOptions, UploadToContainerOptions,
};
use bytes::Bytes;
use cofferdam_backend::{BackendError, Result};
use cofferdam_guest::accounts::with_user;
use cofferdam_guest::{PROGRAM, UID};
use cofferdam_images::Store;
use futures_util::StreamExt;
use sha2::{Digest, Sha256};
use std::collections::HashMap;
use std::io::Read;

/// The repository of prepared images; the tag says what of.
const REPOSITORY: &str = "cofferdam-prepared";

/// Raised when what is put in changes, so that older ones are not used.
const LAYOUT: &str = "1";

/// The most of a file of accounts that is read.
const MAX_ACCOUNTS: u64 = 1 << 20;

/// An image that is ready for sandboxes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Prepared {
    pub(crate) name: String,
    /// Paths at which the image asks for volumes.
    pub(crate) volumes: Vec<String>,
}

/// Prepares an image that the daemon has, or that our store has.
pub(crate) async fn prepare(
    docker: &Docker,
    engine: Engine,
    image: &str,
    store: Option<&Store>,
    helper: &[u8],
) -> Result<Prepared> {
    let base = find(docker, engine, image, store).await?;
    let volumes = base.config.and_then(|config| config.volumes).unwrap_or_default();
    let id = base.id.unwrap_or_else(|| image.to_owned());
    let mut digest = Sha256::new();
    for part in [LAYOUT.as_bytes(), id.as_bytes()] {
        digest.update((part.len() as u64).to_le_bytes());
        digest.update(part);
    }
    digest.update(helper);
    let tag: String = digest.finalize().iter().take(16).map(|byte| format!("{byte:02x}")).collect();
    let name = format!("{REPOSITORY}:{tag}");
    if docker.inspect_image(&name).await.is_err() {
        make(docker, &id, &tag, helper).await?;
    }
    Ok(Prepared { name, volumes })
}

async fn inspect(docker: &Docker, image: &str) -> Result<Option<ImageInspect>> {
    match docker.inspect_image(image).await {
        Ok(base) => Ok(Some(base)),
        Err(error) if status(&error) == Some(404) => Ok(None),
        Err(error) => Err(failed("looking for the image", error)),
    }
}

/// The daemon's own image of that name comes first; one of our store is loaded where it is missing.
async fn find(docker: &Docker, engine: Engine, image: &str, store: Option<&Store>) -> Result<ImageInspect> {
    for name in engine.names(image) {
        if let Some(base) = inspect(docker, &name).await? {
            return Ok(base);
        }
    }
    let missing = || missing(engine, image, store);
    let Some(lease) = load::find(store.ok_or_else(missing)?, image).await? else { return Err(missing()) };
    if let Some(base) = inspect(docker, &load::name(lease.image.id)).await? {
        return Ok(base);
    }
    let name = load::load(docker, lease).await?;
    inspect(docker, &name).await?.ok_or_else(missing)
}

fn missing(engine: Engine, image: &str, store: Option<&Store>) -> BackendError {
    let engine = engine.name();
    let also = store.map(|store| format!(", and neither has the image store {}", store.folder().display()));
    BackendError::Refused {
        reason: format!("the {engine} daemon has no image {image:?}{}", also.unwrap_or_default()),
        fix: format!(
            "bring it to one of them first: `{engine} pull {image}`, `{engine} load`, or `cofferdam image import \
             ROOT_FOLDER_OR_TAR --name {image}`"
        ),
    }
}

async fn make(docker: &Docker, image: &str, tag: &str, helper: &[u8]) -> Result<()> {
    let body = ContainerCreateBody {
        image: Some(image.to_owned()),
        entrypoint: Some(vec![PROGRAM.to_owned()]),
        labels: Some(HashMap::from([(LABEL_SANDBOX.to_owned(), "preparing".to_owned())])),
        network_disabled: Some(true),
        ..ContainerCreateBody::default()
    };
    let created = docker.create_container(None, body).await;
    let container = created.map_err(|error| failed("making a container to prepare the image", error))?.id;
    let filled = fill(docker, &container, tag, helper).await;
    let options = RemoveContainerOptions { force: true, ..Default::default() };
    let removed = docker.remove_container(&container, Some(options)).await;
    filled?;
    removed.map_err(|error| failed("removing the container that prepared the image", error))
}

async fn fill(docker: &Docker, container: &str, tag: &str, helper: &[u8]) -> Result<()> {
    let passwd = accounts(docker, container, "/etc/passwd").await?;
    let group = accounts(docker, container, "/etc/group").await?;
    let layer =
        layer(helper, passwd, group).map_err(|error| BackendError::failed("packing the helper", error))?;
    let options = UploadToContainerOptions { path: "/".to_owned(), ..Default::default() };
    docker
        .upload_to_container(container, Some(options), bollard::body_full(Bytes::from(layer)))
        .await
        .map_err(|error| failed("putting the helper into the image", error))?;
    let options = CommitContainerOptions {
        container: Some(container.to_owned()),
        repo: Some(REPOSITORY.to_owned()),
        tag: Some(tag.to_owned()),
        ..Default::default()
    };
    let config = ContainerConfig {
        labels: Some(HashMap::from([("cofferdam.prepared".to_owned(), tag.to_owned())])),
        ..Default::default()
    };
    let committed = docker.commit_container(options, config).await;
    committed.map(drop).map_err(|error| failed("keeping the prepared image", error))
}

/// A file of accounts in the image; one that is missing is empty.
async fn accounts(docker: &Docker, container: &str, path: &str) -> Result<String> {
    let options = DownloadFromContainerOptions { path: path.to_owned() };
    let mut archive = Vec::new();
    let mut stream = Box::pin(docker.download_from_container(container, Some(options)));
    while let Some(piece) = stream.next().await {
        match piece {
            Ok(piece) => archive.extend_from_slice(&piece),
            Err(error) if status(&error) == Some(404) => return Ok(String::new()),
            Err(error) => return Err(failed("reading accounts of the image", error)),
        }
        if archive.len() as u64 > MAX_ACCOUNTS {
            break;
        }
    }
    let mut text = String::new();
    let mut archive = tar::Archive::new(&archive[..]);
    if let Some(Ok(entry)) = archive.entries().ok().and_then(|mut entries| entries.next()) {
        // What is not text is no file of accounts.
        let _ = entry.take(MAX_ACCOUNTS).read_to_string(&mut text);
    }
    Ok(text)
}

fn layer(helper: &[u8], passwd: String, group: String) -> std::io::Result<Vec<u8>> {
    let (passwd, group) = with_user(passwd, group);
    let mut archive = tar::Builder::new(Vec::new());
    let mut add = |path: &str, kind: tar::EntryType, mode: u32, owner: u32, content: &[u8]| {
        let mut header = tar::Header::new_gnu();
        header.set_entry_type(kind);
        header.set_mode(mode);
        header.set_uid(u64::from(owner));
        header.set_gid(u64::from(owner));
        header.set_mtime(0);
        header.set_size(content.len() as u64);
        archive.append_data(&mut header, path, content)
    };
    let (folder, file) = (tar::EntryType::Directory, tar::EntryType::Regular);
    add(".cofferdam/", folder, 0o755, 0, &[])?;
    add(PROGRAM.trim_start_matches('/'), file, 0o755, 0, helper)?;
    add("workspace/", folder, 0o755, UID, &[])?;
    add("tmp/", folder, 0o1777, 0, &[])?;
    add("etc/passwd", file, 0o644, 0, passwd.as_bytes())?;
    add("etc/group", file, 0o644, 0, group.as_bytes())?;
    archive.into_inner()
}
