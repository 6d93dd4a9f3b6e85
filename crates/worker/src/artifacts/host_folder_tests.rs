//! Artifacts into a real folder, among links that were planted there.

use super::*;
use std::fs;
use std::os::unix::fs::symlink;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU32, Ordering};
use tokio::io::AsyncRead;

/// A folder of this test's own, removed at its end.
struct Scratch(PathBuf);

impl Scratch {
    fn new() -> Self {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let name = format!("cofferdam-{}-{}", std::process::id(), NEXT.fetch_add(1, Ordering::Relaxed));
        let path = std::env::temp_dir().join(name);
        fs::create_dir(&path).unwrap();
        Self(path)
    }

    fn path(&self, below: &str) -> PathBuf {
        self.0.join(below)
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

fn artifact(path: &str) -> ArtifactPath {
    let below = |folder: Option<ArtifactPath>, name: &str| {
        Some(ArtifactPath::below(folder.as_ref(), name.as_bytes()).unwrap())
    };
    path.split('/').fold(None, below).unwrap()
}

async fn put(folder: &mut HostFolder, path: &str, content: &[u8]) -> io::Result<u64> {
    let mut content = content;
    folder.put(&artifact(path), &mut content as &mut (dyn AsyncRead + Send + Sync + Unpin)).await
}

#[tokio::test]
async fn files_arrive_with_their_folders() {
    let scratch = Scratch::new();
    let mut folder = HostFolder::open(&scratch.path("new")).unwrap();
    assert_eq!(put(&mut folder, "a/b/c.txt", b"hello").await.unwrap(), 5);
    assert_eq!(put(&mut folder, "a/-d", b"").await.unwrap(), 0);
    assert_eq!(fs::read(scratch.path("new/a/b/c.txt")).unwrap(), b"hello");
    assert_eq!(fs::read_dir(scratch.path("new/a")).unwrap().count(), 2, "no part is left");
}

#[tokio::test]
async fn what_is_there_is_replaced_and_never_written_through() {
    let scratch = Scratch::new();
    fs::write(scratch.path("secret"), "untouched").unwrap();
    fs::create_dir(scratch.path("out")).unwrap();
    symlink(scratch.path("secret"), scratch.path("out/soft")).unwrap();
    fs::hard_link(scratch.path("secret"), scratch.path("out/hard")).unwrap();
    fs::write(scratch.path("out/old"), "a longer old text").unwrap();
    let mut folder = HostFolder::open(&scratch.path("out")).unwrap();
    for name in ["soft", "hard", "old"] {
        put(&mut folder, name, b"new").await.unwrap();
        assert_eq!(fs::read(scratch.path("out").join(name)).unwrap(), b"new");
        assert!(fs::symlink_metadata(scratch.path("out").join(name)).unwrap().is_file());
    }
    assert_eq!(fs::read(scratch.path("secret")).unwrap(), b"untouched");
}

#[tokio::test]
async fn links_and_files_are_no_way_to_a_folder() {
    let scratch = Scratch::new();
    fs::create_dir(scratch.path("out")).unwrap();
    fs::create_dir(scratch.path("elsewhere")).unwrap();
    symlink(scratch.path("elsewhere"), scratch.path("out/link")).unwrap();
    fs::write(scratch.path("out/file"), "").unwrap();
    let mut folder = HostFolder::open(&scratch.path("out")).unwrap();
    for path in ["link/x", "file/x"] {
        let error = put(&mut folder, path, b"x").await.unwrap_err();
        assert!(error.to_string().contains("link or a file"), "{error}");
    }
    assert_eq!(fs::read_dir(scratch.path("elsewhere")).unwrap().count(), 0);
    fs::create_dir(scratch.path("out/folder")).unwrap();
    assert!(put(&mut folder, "folder", b"x").await.is_err());
    assert_eq!(fs::read_dir(scratch.path("out")).unwrap().count(), 3, "no part is left");
}

#[tokio::test]
async fn half_an_artifact_is_none() {
    let scratch = Scratch::new();
    let mut folder = HostFolder::open(&scratch.path("out")).unwrap();
    let mut cut = super::super::capped::Capped::new(&b"more than four"[..], 4);
    assert!(folder.put(&artifact("x"), &mut cut).await.is_err());
    assert_eq!(fs::read_dir(scratch.path("out")).unwrap().count(), 0);
}

#[test]
fn only_a_folder_will_do() {
    let scratch = Scratch::new();
    fs::write(scratch.path("file"), "").unwrap();
    assert!(HostFolder::open(&scratch.path("file")).is_err());
    assert!(HostFolder::open(&scratch.path("missing/deeper")).is_err());
}
