//! Credentials in an image: in the files of every layer, also of those that a later one deletes, in the environment
//! and in the history of how it was made.

mod patterns;

use crate::{ImageError, Lease, Result};
use patterns::{by_content, by_name, by_variable};
use rustix::fs::{AtFlags, Dir, FileType, Mode, OFlags, fstat, openat, statat};
use serde::Serialize;
use std::fs::File;
use std::io::{self, Read};
use std::os::fd::OwnedFd;
use std::path::Path;

/// Keys and settings are small; what is larger is a program or data.
const MAX_FILE_BYTES: u64 = 4 << 20;

/// More than this is not read by anybody; the image is refused by the first.
const MAX_FINDINGS: usize = 100;

/// Something that looks like a credential.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Finding {
    /// Where: a path, `environment` or `history`.
    pub place: String,
    /// The layer of a path, the lowest is 1.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub layer: Option<usize>,
    /// What it looks like. Never the value itself.
    pub what: &'static str,
}

/// Looks through an image that is in use. At most a hundred findings are told.
pub fn scan(lease: &Lease) -> Result<Vec<Finding>> {
    let mut findings = Vec::new();
    let config = &lease.image.config;
    let mut text = |place: &str, text: &str| {
        // A step of the history has several words, each of which may set a variable.
        let by_word = || text.split_whitespace().find_map(by_variable);
        if let Some(what) = by_content(text.as_bytes()).or_else(by_word) {
            findings.push(Finding { place: place.to_owned(), layer: None, what });
        }
    };
    config.config.env.iter().for_each(|variable| text("environment", variable));
    config.config.labels.values().for_each(|label| text("labels", label));
    for step in &config.history {
        text("history", &step.created_by);
        text("history", &step.comment);
    }
    // Layers are the uppermost first, and a layer that comes twice is there once.
    for folder in lease.layers.iter().rev() {
        let own = |diff_id: &str| folder.components().any(|part| part.as_os_str() == diff_id);
        let layer = lease.image.layers.iter().position(|layer| own(&layer.diff_id.hex())).map(|i| i + 1);
        let root = File::open(folder).map_err(|error| ImageError::source(folder, error))?;
        walk(root.into(), "", layer, &mut findings).map_err(|error| ImageError::source(folder, error))?;
    }
    findings.truncate(MAX_FINDINGS);
    Ok(findings)
}

/// Looks through a folder without following a link.
fn walk(folder: OwnedFd, prefix: &str, layer: Option<usize>, findings: &mut Vec<Finding>) -> io::Result<()> {
    let mut names = Vec::new();
    for entry in Dir::read_from(&folder)? {
        names.push(entry?.file_name().to_owned());
    }
    names.sort_unstable();
    for name in names {
        if findings.len() >= MAX_FINDINGS || matches!(name.to_bytes(), b"." | b"..") {
            continue;
        }
        let path = format!("{prefix}/{}", name.to_string_lossy());
        let kind = FileType::from_raw_mode(statat(&folder, &*name, AtFlags::SYMLINK_NOFOLLOW)?.st_mode);
        let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
        match kind {
            FileType::Directory => {
                let below = openat(&folder, &*name, flags | OFlags::DIRECTORY, Mode::empty())?;
                walk(below, &path, layer, findings)?;
            }
            FileType::RegularFile => {
                let file = openat(&folder, &*name, flags, Mode::empty())?;
                if let Some(what) = look(Path::new(&path), file)? {
                    findings.push(Finding { place: path, layer, what });
                }
            }
            _ => {}
        }
    }
    Ok(())
}

fn look(path: &Path, file: OwnedFd) -> io::Result<Option<&'static str>> {
    let size = u64::try_from(fstat(&file)?.st_size).unwrap_or(0);
    if size == 0 || size > MAX_FILE_BYTES {
        return Ok(None);
    }
    let mut bytes = Vec::with_capacity(size as usize);
    File::from(file).take(MAX_FILE_BYTES).read_to_end(&mut bytes)?;
    Ok(by_name(path, &bytes).or_else(|| by_content(&bytes)))
}
