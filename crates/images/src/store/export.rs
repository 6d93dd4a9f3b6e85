//! An image of the store as an archive, in the form that `docker save` writes and daemons load.
//!
//! What the layers were packed as is not kept, so their digests and the image's are other ones in it, and all files
//! belong to root.

use super::lease::Lease;
use crate::config::{ImageConfig, RootFs};
use crate::digest::Hashing;
use crate::folder::FolderTar;
use crate::tar::{BLOCK, END, Kind, Written, write_header};
use crate::{Digest, ImageError, Result};
use serde_json::json;
use std::collections::VecDeque;
use std::io::{self, Cursor, Read};

/// Reads as an archive.
pub struct Export {
    parts: VecDeque<Box<dyn Read + Send>>,
}

impl std::fmt::Debug for Export {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Export").field("parts", &self.parts.len()).finish()
    }
}

impl Lease {
    /// The image as an archive, to be known by this name. Every layer is read twice: an archive says the size of what
    /// comes, and the digest of a layer is in its configuration.
    pub fn export(&self, name: &str) -> Result<Export> {
        let mut export = Export { parts: VecDeque::new() };
        let (mut names, mut diff_ids) = (Vec::new(), Vec::new());
        for path in self.layers.iter().rev() {
            let failed = |error| ImageError::source(path, error);
            let (diff_id, size, _) = Hashing::new(FolderTar::of_layer(path)?).finish().map_err(failed)?;
            // A name by which archives of images are told from those of roots.
            let name = format!("{}/layer.tar", diff_id.hex());
            // Two layers that became equal are one file.
            if !names.contains(&name) {
                export.put(&name, size, Box::new(FolderTar::of_layer(path)?));
            }
            names.push(name);
            diff_ids.push(diff_id);
        }
        let rootfs = RootFs { kind: "layers".to_owned(), diff_ids };
        // The history tells of layers that are no more.
        let config = ImageConfig { rootfs, history: Vec::new(), ..self.image.config.clone() };
        let config = json!(config).to_string().into_bytes();
        let config_name = format!("{}.json", Digest::of(&config).hex());
        let manifest = json!([{ "Config": config_name, "RepoTags": [name], "Layers": names }]).to_string();
        export.put(&config_name, config.len() as u64, Box::new(Cursor::new(config)));
        export.put("manifest.json", manifest.len() as u64, Box::new(Cursor::new(manifest.into_bytes())));
        export.parts.push_back(Box::new(Cursor::new(END)));
        Ok(export)
    }
}

impl Export {
    fn put(&mut self, name: &str, size: u64, content: Box<dyn Read + Send>) {
        let (path, link) = (name.as_bytes(), &b""[..]);
        let entry = Written { path, link, kind: Kind::File, mode: 0o644, uid: 0, seconds: 0, size };
        self.parts.push_back(Box::new(Cursor::new(write_header(&entry))));
        self.parts.push_back(Box::new(Exactly { inner: content, left: size }));
        let padding = size.wrapping_neg() % BLOCK as u64;
        self.parts.push_back(Box::new(io::repeat(0).take(padding)));
    }
}

impl Read for Export {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        while let Some(part) = self.parts.front_mut() {
            match part.read(buffer)? {
                0 if !buffer.is_empty() => drop(self.parts.pop_front()),
                n => return Ok(n),
            }
        }
        Ok(0)
    }
}

/// A layer does not change while it is held; should it have, the archive must not be taken for whole.
struct Exactly {
    inner: Box<dyn Read + Send>,
    left: u64,
}

impl Read for Exactly {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let n = self.inner.read(buffer)?;
        let changed = || io::Error::other("a layer of the image store changed while it was read");
        self.left = self.left.checked_sub(n as u64).ok_or_else(changed)?;
        match (n, self.left) {
            (0, 1..) if !buffer.is_empty() => Err(changed()),
            _ => Ok(n),
        }
    }
}
