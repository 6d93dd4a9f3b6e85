//! What is set up before another backend than the native one is attacked: its daemon, its root, and the plants.
//!
//! A native sandbox is made by a launcher that is started with secrets to leak. The other backends make theirs from
//! the server's own process, so that here the suite is that server: it is started again, by way of the probe, with
//! the same secrets in its environment, command line, descriptors and keyring.

use crate::args::Args;
use crate::daemon::Daemon;
use crate::host::DESCRIPTORS;
use crate::plants::Plants;
use crate::wall::Wall;
use serde::{Deserialize, Serialize};
use std::fs;
use std::io;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

/// The program that is the helper where the filter is left out; it lies beside this one.
pub(crate) const OPEN_HELPER: &str = "attack-guest";

/// Everything that the second start has to know.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Site {
    pub(crate) wall: Wall,
    pub(crate) plants: Plants,
    /// A root of this machine's own programs, with the plants' traps in it.
    pub(crate) root: PathBuf,
    pub(crate) socket: Option<PathBuf>,
}

impl Site {
    pub(crate) fn load(path: &Path) -> Result<Self, String> {
        let text = fs::read_to_string(path).map_err(|e| format!("{}: {e}", path.display()))?;
        serde_json::from_str(&text).map_err(|e| format!("{}: {e}", path.display()))
    }
}

/// Sets it up, runs the suite in it, and takes it away.
pub(crate) fn run(wall: Wall, args: &Args, words: &[String]) -> Result<ExitCode, String> {
    let probe = args.probe();
    let cofferdam =
        args.cofferdam.as_ref().ok_or("--backend needs --cofferdam, which is the helper inside")?;
    set(wall, &probe, cofferdam, words).map_err(|e| e.to_string())
}

fn set(wall: Wall, probe: &Path, cofferdam: &Path, words: &[String]) -> io::Result<ExitCode> {
    let own = std::env::current_exe()?;
    let mut plants = Plants::make(probe)?;
    plants.group = wall.group().to_owned();
    let root = plants.folder.join("root");
    make_root(&root, &plants.image, &[cofferdam, &own.with_file_name(OPEN_HELPER)])?;
    let daemon =
        wall.engine().map(|engine| Daemon::start(engine, &plants.folder.join("daemon"))).transpose()?;
    if let Some(daemon) = &daemon {
        daemon.import(&root)?;
    }
    let site = Site { wall, root, socket: daemon.as_ref().map(|daemon| daemon.socket.clone()), plants };
    let played = play(&site, probe, &own, words);
    // Its folder lies in that of the plants, which goes last.
    drop(daemon);
    played
}

/// Starts this program again, as a careless server would be started.
fn play(site: &Site, probe: &Path, own: &Path, words: &[String]) -> io::Result<ExitCode> {
    let file = site.plants.folder.join("site.json");
    fs::write(&file, serde_json::to_vec(site)?)?;
    let Plants { name, nonce, host_file, .. } = &site.plants;
    let mut command = Command::new(probe);
    command.args(["--plant", name, nonce]).arg(host_file).arg(own).args(words).arg("--site").arg(&file);
    command.arg(format!("--token={nonce}")).env("SERVER_TOKEN", nonce);
    let status = command.status()?;
    Ok(status.code().and_then(|code| u8::try_from(code).ok()).map_or(ExitCode::FAILURE, ExitCode::from))
}

/// The root of the backends' own tests, and the traps.
fn make_root(root: &Path, traps: &Path, programs: &[&Path]) -> io::Result<()> {
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/../../scripts/container-root.sh");
    let made = Command::new(script).arg(root).args(programs).status()?;
    if !made.success() {
        return Err(io::Error::other(format!("container-root.sh: {made}")));
    }
    fs::create_dir_all(root.join("open"))?;
    for (name, mode) in [("sacrifice", 0o444), ("suid", 0o6755)] {
        fs::copy(traps.join(name), root.join(name))?;
        fs::set_permissions(root.join(name), fs::Permissions::from_mode(mode))?;
    }
    for n in 0..DESCRIPTORS {
        symlink(format!("/proc/self/fd/{n}"), root.join(format!("fd{n}")))?;
    }
    fs::set_permissions(root.join("open"), fs::Permissions::from_mode(0o1777))
}
