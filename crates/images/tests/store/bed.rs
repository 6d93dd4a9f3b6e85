//! Stores of their own, and images made by tar and by hand.

use cofferdam_images::{Digest, ImageError, ImageName, ImageRef, Import, ImportLimits, Imported, Store};
use serde_json::{Value, json};
use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicU32, Ordering};

/// A folder that is gone after the test, with a store in it.
pub(crate) struct Bed {
    pub(crate) top: PathBuf,
    pub(crate) store: Store,
}

impl Bed {
    pub(crate) fn new() -> Self {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let top = std::env::temp_dir().join(format!("cofferdam-images-{}-{number}", std::process::id()));
        let _ = fs::remove_dir_all(&top);
        fs::create_dir(&top).expect("a folder");
        let store = Store::at(top.join("store"));
        Self { top, store }
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.top.join(name)
    }

    pub(crate) fn import(&self, source: &Path, name: &str) -> Result<Imported, ImageError> {
        self.import_within(source, name, ImportLimits::default())
    }

    pub(crate) fn import_within(
        &self,
        source: &Path,
        name: &str,
        limits: ImportLimits,
    ) -> Result<Imported, ImageError> {
        let name = ImageName::parse("name", name).expect("a name");
        self.store.import(&Import { source, name: &name, limits, progress: &|_| {} })
    }

    /// A folder with files: a path ending in a slash is a folder, one with an arrow a link.
    pub(crate) fn tree(&self, name: &str, files: &[(&str, &str)]) -> PathBuf {
        let root = self.path(name);
        fs::create_dir_all(&root).expect("a folder");
        for (path, content) in files {
            let path = root.join(path);
            fs::create_dir_all(path.parent().expect("a parent")).expect("folders");
            match content.strip_prefix("-> ") {
                Some(target) => symlink(target, &path).expect("a link"),
                None => fs::write(&path, content).expect("a file"),
            }
        }
        root
    }

    /// A layer's archive, as tar makes it.
    pub(crate) fn layer(&self, name: &str, files: &[(&str, &str)]) -> Vec<u8> {
        let root = self.tree(name, files);
        let archive = self.path(&format!("{name}.tar"));
        tar(&root, &archive, &["."]);
        fs::read(archive).expect("an archive")
    }

    /// An OCI layout in a folder.
    pub(crate) fn oci(&self, name: &str, image: &MadeImage) -> PathBuf {
        let root = self.path(name);
        let blobs = root.join("blobs/sha256");
        fs::create_dir_all(&blobs).expect("folders");
        let put = |bytes: &[u8]| {
            let digest = Digest::of(bytes);
            fs::write(blobs.join(digest.hex()), bytes).expect("a blob");
            json!({"digest": digest, "size": bytes.len()})
        };
        let layers: Vec<Value> = image.blobs.iter().map(|blob| put(blob)).collect();
        let config = put(&image.config);
        let manifest = put(&bytes(&json!({"schemaVersion": 2, "config": config, "layers": layers})));
        fs::write(root.join("index.json"), bytes(&json!({"schemaVersion": 2, "manifests": [manifest]})))
            .expect("a file");
        fs::write(root.join("oci-layout"), r#"{"imageLayoutVersion":"1.0.0"}"#).expect("a file");
        root
    }

    /// What `docker save` writes, by tar.
    pub(crate) fn docker(&self, name: &str, image: &MadeImage, tags: &[&str]) -> PathBuf {
        let root = self.path(&format!("{name}-files"));
        fs::create_dir_all(&root).expect("a folder");
        let config = format!("{}.json", Digest::of(&image.config).hex());
        fs::write(root.join(&config), &image.config).expect("a file");
        let mut layers = Vec::new();
        for (i, blob) in image.blobs.iter().enumerate() {
            let folder = format!("{:064x}", i + 1);
            fs::create_dir_all(root.join(&folder)).expect("a folder");
            fs::write(root.join(&folder).join("layer.tar"), blob).expect("a file");
            layers.push(format!("{folder}/layer.tar"));
        }
        let manifest = json!([{"Config": config, "RepoTags": tags, "Layers": layers}]);
        fs::write(root.join("manifest.json"), bytes(&manifest)).expect("a file");
        let archive = self.path(name);
        tar(&root, &archive, &names(&root));
        archive
    }

    /// Whether the store has nothing half there: no staging, and no layer but these.
    pub(crate) fn holds(&self, layers: usize) {
        assert_eq!(names(&self.store.folder().join("staging")), [""; 0]);
        assert_eq!(names(&self.store.folder().join("layers")).len(), layers);
    }

    pub(crate) fn file(&self, image: &str, path: &str) -> Option<String> {
        let lease = self.store.open(&wanted(image)).expect("the image is there");
        lease.layers.iter().find_map(|layer| fs::read_to_string(layer.join(path)).ok())
    }
}

impl Drop for Bed {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.top);
    }
}

/// An image by its parts.
#[derive(Clone)]
pub(crate) struct MadeImage {
    pub(crate) config: Vec<u8>,
    pub(crate) blobs: Vec<Vec<u8>>,
}

/// Layers as they are, under a configuration that names them.
pub(crate) fn image(layers: &[Vec<u8>], process: Value) -> MadeImage {
    let diff_ids: Vec<Digest> = layers.iter().map(|layer| Digest::of(layer)).collect();
    let rootfs = json!({"type": "layers", "diff_ids": diff_ids});
    let config = json!({"architecture": "amd64", "os": "linux", "config": process, "rootfs": rootfs});
    MadeImage { config: bytes(&config), blobs: layers.to_vec() }
}

pub(crate) fn wanted(image: &str) -> ImageRef {
    ImageRef::parse("image", image).expect("an image")
}

pub(crate) fn bytes(value: &Value) -> Vec<u8> {
    serde_json::to_vec(value).expect("JSON")
}

pub(crate) fn names(folder: &Path) -> Vec<String> {
    let entries = fs::read_dir(folder).expect("a folder");
    let mut names: Vec<String> =
        entries.map(|entry| entry.expect("an entry").file_name().into_string().expect("text")).collect();
    names.sort();
    names
}

pub(crate) fn tar<S: AsRef<str>>(folder: &Path, archive: &Path, names: &[S]) {
    let mut tar = Command::new("tar");
    tar.arg("-C").arg(folder).arg("-cf").arg(archive).args(names.iter().map(S::as_ref));
    assert!(tar.status().expect("tar starts").success());
}

pub(crate) fn compress(program: &str, path: &Path) -> PathBuf {
    let output = Command::new(program).arg("-c").arg(path).output().expect("it starts");
    assert!(output.status.success());
    let compressed = path.with_extension(program);
    fs::write(&compressed, output.stdout).expect("a file");
    compressed
}
