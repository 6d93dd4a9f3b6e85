//! A store of its own, and images around a static busybox.

use crate::support::{Answer, Folder, finish, program};
use cofferdam_images::Digest;
use serde_json::{Value, json};
use std::fs;
use std::os::unix::fs::symlink;
use std::path::PathBuf;
use std::process::{Command, Stdio};

const BUSYBOX: &str = "/bin/busybox";

/// A folder on a disk, where roots can be writable, with a store in it.
pub(crate) struct Bed {
    pub(crate) folder: Folder,
}

impl Bed {
    pub(crate) fn new() -> Self {
        Self { folder: Folder::on_disk() }
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.folder.0.join(name)
    }

    pub(crate) fn store(&self) -> PathBuf {
        self.path("store")
    }

    /// The program with these words, on this store.
    pub(crate) fn command(&self, words: &[&str]) -> Command {
        let mut command = Command::new(program());
        command.args(words).env("COFFERDAM_IMAGES", self.store());
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        command
    }

    pub(crate) fn cofferdam(&self, words: &[&str]) -> Answer {
        finish(self.command(words).spawn().expect("the program starts"))
    }

    /// The same, which must succeed.
    pub(crate) fn ok(&self, words: &[&str]) -> String {
        let answer = self.cofferdam(words);
        assert_eq!(answer.code, Some(0), "{words:?}: {answer:?}");
        answer.stdout
    }

    /// A folder with files; `-> ` makes a link.
    pub(crate) fn tree(&self, name: &str, files: &[(&str, &str)]) -> String {
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
        root.to_str().expect("text").to_owned()
    }

    /// A root filesystem that can run a shell, and these files.
    pub(crate) fn busybox(&self, name: &str, files: &[(&str, &str)]) -> String {
        let root = self.tree(name, files);
        fs::create_dir_all(self.path(name).join("bin")).expect("a folder");
        fs::copy(BUSYBOX, self.path(name).join("bin/busybox")).expect("busybox-static is installed");
        for tool in ["sh", "cat", "ls", "sleep", "touch"] {
            symlink("busybox", self.path(name).join("bin").join(tool)).expect("a link");
        }
        root
    }

    /// An image of Docker's in an archive, from folders that are its layers.
    pub(crate) fn docker(&self, name: &str, layers: &[&str], process: &Value) -> String {
        let folder = self.path(&format!("{name}-files"));
        fs::create_dir_all(&folder).expect("a folder");
        let mut diff_ids = Vec::new();
        let mut names = Vec::new();
        for (i, layer) in layers.iter().enumerate() {
            let file = format!("{:064x}.tar", i + 1);
            tar(layer, &folder.join(&file), &["."]);
            diff_ids.push(Digest::of(&fs::read(folder.join(&file)).expect("a file")));
            names.push(file);
        }
        let rootfs = json!({"type": "layers", "diff_ids": diff_ids});
        let config =
            json!({"architecture": "amd64", "os": "linux", "config": process, "rootfs": rootfs}).to_string();
        let config_name = format!("{}.json", Digest::of(config.as_bytes()).hex());
        fs::write(folder.join(&config_name), &config).expect("a file");
        let manifest = json!([{"Config": config_name, "RepoTags": [], "Layers": names}]).to_string();
        fs::write(folder.join("manifest.json"), manifest).expect("a file");
        let archive = self.path(name);
        let mut all = vec![config_name.as_str(), "manifest.json"];
        all.extend(names.iter().map(String::as_str));
        tar(folder.to_str().expect("text"), &archive, &all);
        archive.to_str().expect("text").to_owned()
    }
}

pub(crate) fn tar(folder: &str, archive: &std::path::Path, names: &[&str]) {
    let mut tar = Command::new("tar");
    tar.args(["-C", folder, "-cf"]).arg(archive).args(names);
    assert!(tar.status().expect("tar starts").success());
}
