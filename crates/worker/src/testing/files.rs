//! The files of a fake sandbox: a flat map from full paths to nodes.

use cofferdam_backend::{BackendError, Entry, EntryKind, Result};
use cofferdam_core::GuestPath;
use std::collections::BTreeMap;

/// What a path names.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Node {
    Folder,
    File {
        mode: u32,
        content: Vec<u8>,
    },
    /// A file that lists as small as it is not.
    Growing {
        listed_bytes: u64,
        content: Vec<u8>,
    },
    Link,
    Other,
}

#[derive(Debug, Clone, Default)]
pub struct FakeFiles {
    nodes: BTreeMap<Vec<u8>, Node>,
}

impl FakeFiles {
    /// Puts a node at a path, and folders above it. Paths are bytes, as a kernel has them.
    pub fn put(&mut self, path: impl AsRef<[u8]>, node: Node) {
        let path = path.as_ref();
        for (i, _) in path.iter().enumerate().skip(1).filter(|(_, byte)| **byte == b'/') {
            self.nodes.entry(path[..i].to_vec()).or_insert(Node::Folder);
        }
        self.nodes.insert(path.to_vec(), node);
    }

    pub fn put_file(&mut self, path: impl AsRef<[u8]>, content: &[u8]) {
        self.put(path, Node::File { mode: 0o644, content: content.to_vec() });
    }

    pub fn get(&self, path: &str) -> Option<&Node> {
        self.nodes.get(path.as_bytes())
    }

    pub(super) fn read(&self, path: &GuestPath) -> Result<Vec<u8>> {
        match self.get(path.as_str()) {
            Some(Node::File { content, .. } | Node::Growing { content, .. }) => Ok(content.clone()),
            Some(_) => Err(not_plain(path)),
            None => Err(BackendError::NotFound { path: path.to_string() }),
        }
    }

    /// A folder has to be empty, as everywhere.
    pub(super) fn remove(&mut self, path: &GuestPath) -> Result<()> {
        if matches!(self.get(path.as_str()), Some(Node::Folder)) && !self.list(path, 1)?.is_empty() {
            return Err(not_plain(path));
        }
        let removed = self.nodes.remove(path.as_str().as_bytes());
        removed.map(drop).ok_or_else(|| BackendError::NotFound { path: path.to_string() })
    }

    pub(super) fn list(&self, path: &GuestPath, limit: usize) -> Result<Vec<Entry>> {
        match self.get(path.as_str()) {
            Some(Node::Folder) => {}
            Some(_) => return Err(not_plain(path)),
            None => return Err(BackendError::NotFound { path: path.to_string() }),
        }
        let prefix = format!("{path}/").into_bytes();
        let below =
            self.nodes.iter().filter_map(|(path, node)| Some((path.strip_prefix(&prefix[..])?, node)));
        let here = below.filter(|(name, _)| !name.contains(&b'/'));
        Ok(here.take(limit).map(|(name, node)| entry(name, node)).collect())
    }
}

fn not_plain(path: &GuestPath) -> BackendError {
    BackendError::NotPermitted { path: path.to_string(), reason: "not of that kind".to_owned() }
}

fn entry(name: &[u8], node: &Node) -> Entry {
    let (kind, size_bytes) = match node {
        Node::Folder => (EntryKind::Folder, 0),
        Node::File { content, .. } => (EntryKind::File, content.len() as u64),
        Node::Growing { listed_bytes, .. } => (EntryKind::File, *listed_bytes),
        Node::Link => (EntryKind::Link, 0),
        Node::Other => (EntryKind::Other, 0),
    };
    Entry { name: name.to_vec(), kind, size_bytes }
}
