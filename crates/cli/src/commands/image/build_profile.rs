//! `cofferdam image build-profile`: a root filesystem from Debian's packages, by debootstrap, what Debian lacks
//! (`tools`), and its import.

mod tools;

use super::super::remote::{print, print_json};
use super::progress::Reading;
use super::store;
use super::view::{Shown, size};
use crate::args::ImageBuildArgs;
use crate::exit::{Failure, say};
use cofferdam_images::{ImageName, Import, ImportLimits, Profile};
use std::fs::{self, File};
use std::io::{ErrorKind, IsTerminal, Read, stderr};
use std::path::Path;
use std::process::{Command, ExitCode, ExitStatus, Stdio};

const MIRROR: &str = "http://deb.debian.org/debian";

/// What packages bring and no sandbox needs; some of it would make every build another image.
const REMOVED: [&str; 6] =
    ["var/cache/apt", "var/lib/apt/lists", "var/log", "usr/share/doc", "usr/share/man", "usr/share/info"];

/// The end of what a program said, if it failed.
const LOG_BYTES: usize = 600;

pub(super) fn build_profile(args: &ImageBuildArgs) -> Result<ExitCode, Failure> {
    let profile = Profile::by_name("profile", &args.profile)?;
    let name = ImageName::parse("--name", args.name.as_deref().unwrap_or(&profile.name))?;
    let mirror = args.mirror.as_deref().unwrap_or(MIRROR);
    if mirror.starts_with('-') {
        return Err(Failure::new(format!("--mirror {mirror:?}: write the address of a Debian mirror")));
    }
    if !rustix::process::geteuid().is_root() {
        return Err(Failure::new(
            "debootstrap needs root; run it as root, or import an image that was made elsewhere",
        ));
    }
    let store = store()?;
    let work = store.work_folder()?;
    if stderr().is_terminal() && !args.json {
        say(&format!(
            "making {name} from {} packages and what they need; this takes minutes",
            profile.packages.len()
        ));
    }
    let root = work.path().join("root");
    bootstrap(&profile, mirror, &root, &work.path().join("log"))?;
    tools::install(&store, &work, &profile, &root)?;
    clean(&root)?;
    for path in profile.removed.iter().map(|path| root.join(path)) {
        // A later package may have it no more; what it has instead, the check finds.
        if fs::symlink_metadata(&path).is_ok() {
            remove(&path)?;
        }
    }
    let reading = Reading::new(&root, args.json);
    let progress = |bytes| reading.advance(bytes);
    let import = Import { source: &root, name: &name, limits: ImportLimits::default(), progress: &progress };
    let imported = store.import(&import);
    reading.end();
    let image = imported?.image;
    if args.json {
        print_json(&Shown::new(&image, vec![name.to_string()]))?;
    } else {
        print(&format!("{name} {}\n{}\n", image.id, size(image.size_bytes())))?;
    }
    Ok(ExitCode::SUCCESS)
}

fn bootstrap(profile: &Profile, mirror: &str, root: &Path, log: &Path) -> Result<(), Failure> {
    let output = File::create(log)?;
    let mut debootstrap = Command::new("debootstrap");
    debootstrap.args(["--variant=minbase", &format!("--include={}", profile.packages.join(","))]);
    debootstrap.arg(&profile.suite).arg(root).arg(mirror);
    debootstrap.stdin(Stdio::null()).stdout(output.try_clone()?).stderr(output);
    let status = debootstrap.status().map_err(|error| match error.kind() {
        ErrorKind::NotFound => Failure::new("debootstrap is not installed; apt-get install debootstrap"),
        _ => Failure::new(format!("debootstrap: {error}")),
    })?;
    if status.success() {
        return Ok(());
    }
    Err(last_words("debootstrap", status, log))
}

/// What a program said before it failed.
fn last_words(program: &str, status: ExitStatus, log: &Path) -> Failure {
    let mut said = Vec::new();
    let _ = File::open(log).and_then(|mut log| log.read_to_end(&mut said));
    let said = String::from_utf8_lossy(&said);
    let from = said.len().saturating_sub(LOG_BYTES);
    let end = said.get(from..).unwrap_or(&said).trim();
    Failure::new(format!("{program} failed ({status}); its last words: {end}"))
}

/// Empties what is not needed; the folders stay, as packages expect them.
fn clean(root: &Path) -> Result<(), Failure> {
    for name in REMOVED {
        let folder = root.join(name);
        let entries = match fs::read_dir(&folder) {
            Err(error) if error.kind() == ErrorKind::NotFound => continue,
            other => other?,
        };
        for entry in entries {
            remove(&entry?.path())?;
        }
    }
    Ok(())
}

fn remove(path: &Path) -> Result<(), Failure> {
    match fs::symlink_metadata(path)?.is_dir() {
        true => fs::remove_dir_all(path)?,
        false => fs::remove_file(path)?,
    }
    Ok(())
}
