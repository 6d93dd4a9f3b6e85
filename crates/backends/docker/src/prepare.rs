//! An image with what a sandbox needs besides: the helper, a place for its files, a name for its user.
//!
//! A container with a read-only root takes no files, and a mount would show a path of the host and need one
//! there. So the helper becomes the last layer of an image of its own, made once for each image and each helper.

use crate::container::LABEL_SANDBOX;
use crate::daemon::{failed, status};
use bollard::Docker;
use bollard::models::{ContainerConfig, ContainerCreateBody};
use bollard::query_parameters::{
    CommitContainerOptions, DownloadFromContainerOptions, RemoveContainerOptions, UploadToContainerOptions,
};
use bytes::Bytes;
use cofferdam_backend::{BackendError, Result};
use cofferdam_guest::{PROGRAM, UID};
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

pub(crate) async fn prepare(docker: &Docker, image: &str, helper: &[u8]) -> Result<Prepared> {
    let base = match docker.inspect_image(image).await {
        Ok(base) => base,
        Err(error) if status(&error) == Some(404) => return Err(missing(image)),
        Err(error) => return Err(failed("looking for the image", error)),
    };
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

fn missing(image: &str) -> BackendError {
    BackendError::Refused {
        reason: format!("the daemon has no image {image:?}"),
        fix: format!(
            "bring it there first: `docker pull {image}`, `docker load`, or `docker import ROOT.tar {image}`"
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

/// Adds a line for our user, unless somebody has the number already.
fn with_user(mut text: String, line: &str) -> String {
    let number = UID.to_string();
    if !text.lines().any(|line| line.split(':').nth(2) == Some(&*number)) {
        if !text.is_empty() && !text.ends_with('\n') {
            text.push('\n');
        }
        text.push_str(line);
        text.push('\n');
    }
    text
}

fn layer(helper: &[u8], passwd: String, group: String) -> std::io::Result<Vec<u8>> {
    let passwd = with_user(passwd, &format!("sandbox:x:{UID}:{UID}:sandbox:/workspace:/bin/sh"));
    let group = with_user(group, &format!("sandbox:x:{UID}:"));
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_user_is_added_where_nobody_has_the_number() {
        let line = "sandbox:x:1000:1000:sandbox:/workspace:/bin/sh";
        assert_eq!(with_user(String::new(), line), format!("{line}\n"));
        let root = "root:x:0:0:root:/root:/bin/sh";
        assert_eq!(with_user(root.to_owned(), line), format!("{root}\n{line}\n"));
        let node = "node:x:1000:1000::/home/node:/bin/bash\n";
        assert_eq!(with_user(node.to_owned(), line), node);
    }
}
