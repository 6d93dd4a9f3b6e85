//! The shared tree as an image: `tar` piped into an engine's own `import`, once for each tree.

use std::path::Path;
use std::process::{Command, Stdio};

use super::whole_command::quiet;
use crate::failure::{Doing, Failure, Result};

/// `engine` makes a command that lacks only its subcommand.
pub(super) fn ensure(engine: impl Fn() -> Command, image: &str, rootfs: &Path) -> Result<()> {
    let known = engine().args(["image", "inspect", image]).status().doing("looking for the image")?;
    if known.success() {
        return Ok(());
    }
    let mut tar = quiet("/usr/bin/tar")
        .arg("-C")
        .arg(rootfs)
        .args(["--numeric-owner", "-c", "."])
        .stdout(Stdio::piped())
        .spawn()
        .doing("starting tar")?;
    let stream = tar.stdout.take().ok_or_else(|| Failure::new("tar has no output"))?;
    let import = engine().args(["import", "-", image]).stdin(stream).stderr(Stdio::piped()).output();
    let packed = tar.wait().doing("waiting for tar")?;
    let import = import.doing("importing the image")?;
    if packed.success() && import.status.success() {
        return Ok(());
    }
    let complaint = String::from_utf8_lossy(&import.stderr);
    Err(Failure::new(format!(
        "the image cannot be imported: {}",
        complaint.trim().lines().last().unwrap_or_default()
    )))
}
