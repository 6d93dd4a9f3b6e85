//! What Debian lacks: wheels into an environment of their own, packages of npm beside each other. Each file is the one
//! that the recipe pins, nothing of it runs before it is in its place, and nothing is looked up anywhere.

use super::last_words;
use crate::exit::Failure;
use cofferdam_images::{Pinned, Profile, Staging, Store};
use serde::Deserialize;
use std::collections::BTreeMap;
use std::fs::{self, File};
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// Below the root.
const NODE_MODULES: &str = "usr/local/lib/node_modules";
const COMMANDS: &str = "usr/local/bin";

/// A time for files that the making would give its own, so that a second making gives the same.
const EPOCH: &str = "1672531200";

/// The part of a package.json that says what can be called.
#[derive(Deserialize)]
struct Package {
    name: String,
    #[serde(default)]
    bin: BTreeMap<String, String>,
}

/// Gets and installs all downloads of a profile, and links its commands.
pub(super) fn install(store: &Store, work: &Staging, profile: &Profile, root: &Path) -> Result<(), Failure> {
    if profile.downloads.is_empty() {
        return Ok(());
    }
    let files = work.path().join("downloads");
    fs::create_dir(&files)?;
    get(store, &profile.downloads, &files)?;
    let log = work.path().join("tools.log");
    let mut found = BTreeMap::new();
    for pinned in &profile.downloads {
        if pinned.file_name().ends_with(".tgz") {
            found.extend(unpack(&files.join(pinned.file_name()), root, &log)?);
        }
    }
    let wheels = || profile.downloads.iter().map(Pinned::file_name).filter(|name| name.ends_with(".whl"));
    if wheels().next().is_some() {
        let environment = format!("opt/{}", profile.name);
        install_wheels(&files, wheels(), root, &environment, &log)?;
        for command in &profile.commands {
            let program = PathBuf::from("/").join(&environment).join("bin").join(command);
            if fs::symlink_metadata(within(root, &program)).is_ok() {
                found.insert(command.clone(), program);
            }
        }
    }
    fs::create_dir_all(root.join(COMMANDS))?;
    for command in &profile.commands {
        let Some(program) = found.get(command) else {
            return Err(Failure::new(format!("none of the downloads of {} has {command}", profile.name)));
        };
        symlink(program, root.join(COMMANDS).join(command))?;
    }
    Ok(())
}

fn get(store: &Store, downloads: &[Pinned], folder: &Path) -> Result<(), Failure> {
    store.sweep_downloads()?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    for pinned in downloads {
        let got = runtime.block_on(cofferdam_registry::fetch(store, &pinned.url, pinned.digest))?;
        got.place(&folder.join(pinned.file_name()))?;
    }
    Ok(())
}

/// A path of the image as one of the host. Only for paths without links, of files that we have put there.
fn within(root: &Path, path: &Path) -> PathBuf {
    root.join(path.strip_prefix("/").unwrap_or(path))
}

/// A package of npm, with everything in it that it needs. Gives the programs that it says it has.
fn unpack(archive: &Path, root: &Path, log: &Path) -> Result<BTreeMap<String, PathBuf>, Failure> {
    let made = archive.with_extension("unpacked");
    fs::create_dir(&made)?;
    let mut tar = Command::new("tar");
    tar.arg("-xzf").arg(archive).arg("-C").arg(&made).args(["--strip-components=1", "--no-same-owner"]);
    run(tar, log)?;
    let Package { name, bin } = serde_json::from_slice(&fs::read(made.join("package.json"))?)?;
    // A name may have a scope before it, and nothing else; the recipe pins what it is.
    let place = root.join(NODE_MODULES).join(&name);
    fs::create_dir_all(place.parent().unwrap_or(root))?;
    fs::rename(&made, &place)?;
    let program =
        |file: String| Path::new("/").join(NODE_MODULES).join(&name).join(file.trim_start_matches("./"));
    let programs: BTreeMap<_, _> = bin.into_iter().map(|(command, file)| (command, program(file))).collect();
    for path in programs.values() {
        let mut chmod = Command::new("chmod");
        chmod.arg("755").arg(within(root, path));
        run(chmod, log)?;
    }
    Ok(programs)
}

/// By the image's own Python. Wheels bring no code that runs when they are installed.
fn install_wheels<'n>(
    files: &Path,
    names: impl Iterator<Item = &'n str>,
    root: &Path,
    environment: &str,
    log: &Path,
) -> Result<(), Failure> {
    let wheels = root.join("var/tmp/wheels");
    fs::create_dir_all(&wheels)?;
    let mut paths = Vec::new();
    for name in names {
        fs::rename(files.join(name), wheels.join(name))?;
        paths.push(format!("/var/tmp/wheels/{name}"));
    }
    let environment = format!("/{environment}");
    run(inside(root, &["python3", "-m", "venv", &environment]), log)?;
    let pip = format!("{environment}/bin/pip");
    let mut install = inside(root, &[&pip, "install", "--no-index", "--no-deps", "--no-cache-dir"]);
    run(
        {
            install.args(["--only-binary", ":all:"]).args(&paths);
            install
        },
        log,
    )?;
    run(inside(root, &[&pip, "check"]), log)?;
    fs::remove_dir_all(&wheels)?;
    Ok(())
}

/// A program of the image, in the image.
fn inside(root: &Path, words: &[&str]) -> Command {
    let mut command = Command::new("chroot");
    command.arg(root).args(words).env_clear();
    command.envs([("PATH", "/usr/sbin:/usr/bin:/sbin:/bin"), ("LANG", "C.UTF-8"), ("HOME", "/nonexistent")]);
    command.envs([("SOURCE_DATE_EPOCH", EPOCH), ("PYTHONHASHSEED", "0"), ("PIP_NO_INPUT", "1")]);
    command.env("PIP_DISABLE_PIP_VERSION_CHECK", "1");
    command
}

fn run(mut command: Command, log: &Path) -> Result<(), Failure> {
    let output = File::options().create(true).append(true).open(log)?;
    let program = command.get_program().to_string_lossy().into_owned();
    let status = command.stdin(Stdio::null()).stdout(output.try_clone()?).stderr(output).status();
    let status = status.map_err(|error| Failure::new(format!("{program}: {error}")))?;
    if status.success() { Ok(()) } else { Err(last_words(&program, status, log)) }
}
