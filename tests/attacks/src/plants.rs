//! What the suite puts on the host for attacks to find, and takes away again.

use crate::mode;
use cofferdam_linux::launcher::default_runtime_folder;
use serde::{Deserialize, Serialize};
use std::fs::{self, File};
use std::io::{self, Read};
use std::net::TcpListener;
use std::ops::Range;
use std::os::linux::net::SocketAddrExt;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::{SocketAddr, UnixListener};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

/// A file of the host that every sandbox has in its root, for locks: nobody else locks it.
const SHARED_FILE: &str = "/usr/bin/true";

#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Plants {
    /// Everything that is a file lies below it.
    pub(crate) folder: PathBuf,
    pub(crate) nonce: String,
    pub(crate) host_file: PathBuf,
    /// A root filesystem with traps in it.
    pub(crate) image: PathBuf,
    pub(crate) name: String,
    pub(crate) port: u16,
    pub(crate) sysv_key: u32,
    /// How the path of a sandbox's group begins in /proc/PID/cgroup.
    pub(crate) group: String,
    sleeper_pid: u32,
    /// What is held and taken away by the process that made them.
    #[serde(skip)]
    #[expect(dead_code, reason = "held until the plants go")]
    kept: Option<Kept>,
}

#[derive(Debug)]
struct Kept {
    folder: PathBuf,
    probe: PathBuf,
    sysv_key: u32,
    sleeper: Child,
    _listeners: (TcpListener, Option<TcpListener>, UnixListener),
    _lock: File,
    elsewhere: Vec<PathBuf>,
}

/// Hexadecimal digits that nobody can guess.
pub(crate) fn random_hex(bytes: usize) -> io::Result<String> {
    let mut random = vec![0; bytes];
    File::open("/dev/urandom")?.read_exact(&mut random)?;
    Ok(random.iter().map(|byte| format!("{byte:02x}")).collect())
}

fn set_mode(path: &Path, mode: u32) -> io::Result<()> {
    fs::set_permissions(path, fs::Permissions::from_mode(mode))
}

/// Both loopback addresses on one port, where the machine has both.
fn listeners() -> io::Result<(TcpListener, Option<TcpListener>, u16)> {
    let four = TcpListener::bind("127.0.0.1:0")?;
    let port = four.local_addr()?.port();
    Ok((four, TcpListener::bind(("::1", port)).ok(), port))
}

impl Plants {
    pub(crate) fn make(probe: &Path) -> io::Result<Self> {
        let (nonce, name) = (random_hex(16)?, format!("cofferdam-attack-{}", random_hex(6)?));
        let folder = std::env::temp_dir().join(&name);
        fs::create_dir(&folder)?;
        set_mode(&folder, 0o755)?;
        let host_file = folder.join("host-file");
        fs::write(&host_file, format!("{nonce}\n"))?;
        set_mode(&host_file, 0o644)?;
        let image = folder.join("image");
        make_image(&image, probe)?;
        let elsewhere = vec![Path::new("/dev/shm").join(&name)];
        fs::write(&elsewhere[0], &nonce)?;
        let (four, six, port) = listeners()?;
        let local = UnixListener::bind_addr(&SocketAddr::from_abstract_name(&name)?)?;
        let lock = File::open(SHARED_FILE)?;
        // Two runs at once would find each other's plants, so the second waits.
        if lock.try_lock().is_err() {
            eprintln!("waiting for another run of the suite, which holds a lock on {SHARED_FILE}");
            lock.lock()?;
        }
        let sysv_key = 0x0c0f_fe00 | (std::process::id() & 0xff);
        let made = Command::new(probe).args(["--shm", "make", &sysv_key.to_string()]).status()?;
        if !made.success() {
            return Err(io::Error::other("the shared memory could not be made"));
        }
        // A process of the host, with the nonce where everyone on the host can read it.
        let sleeper =
            Command::new(probe).arg0(&nonce).args(["--beat", "1000"]).stdout(Stdio::null()).spawn()?;
        let sleeper_pid = sleeper.id();
        let kept = Kept {
            folder: folder.clone(),
            probe: probe.to_owned(),
            sysv_key,
            sleeper,
            _listeners: (four, six, local),
            _lock: lock,
            elsewhere,
        };
        let kept = Some(kept);
        Ok(Self {
            folder,
            nonce,
            host_file,
            image,
            name,
            port,
            sysv_key,
            group: mode::group_path(),
            sleeper_pid,
            kept,
        })
    }

    /// What the catalogue's `{names}` stand for; some are of a sandbox, which has these ids.
    pub(crate) fn fill(&self, text: &str, ids: Option<&Range<u32>>) -> io::Result<String> {
        let read = |path: &str| fs::read_to_string(path).map(|text| text.trim().to_owned());
        let half = |text: String, second: bool| {
            let (a, b) = text.split_at(text.len() / 2);
            if second { b } else { a }.to_owned()
        };
        let own = || ids.ok_or_else(|| io::Error::other("there is no sandbox yet"));
        let value = |name: &str| -> io::Result<String> {
            Ok(match name {
                "nonce_a" => half(self.nonce.clone(), false),
                "nonce_b" => half(self.nonce.clone(), true),
                "host_file" => self.host_file.display().to_string(),
                "host_cmdline" => format!("/proc/{}/cmdline", self.sleeper_pid),
                "host_pid" => self.sleeper_pid.to_string(),
                "host_name" => read("/proc/sys/kernel/hostname")?,
                "host_folder" => self.folder.display().to_string(),
                "boot_id_a" => half(read("/proc/sys/kernel/random/boot_id")?, false),
                "boot_id_b" => half(read("/proc/sys/kernel/random/boot_id")?, true),
                "uid_first" => own()?.start.to_string(),
                "uid_count" => own()?.len().to_string(),
                "key_description" | "shm_name" | "abstract" => self.name.clone(),
                "sysv_key" => self.sysv_key.to_string(),
                "port" => self.port.to_string(),
                "shared_file" => SHARED_FILE.to_owned(),
                "runtime_folder" => default_runtime_folder().display().to_string(),
                "group" => self.group.clone(),
                _ => match name.strip_prefix("ns_") {
                    Some(kind) => fs::read_link(format!("/proc/self/ns/{kind}"))?.display().to_string(),
                    None => return Err(io::Error::other(format!("nothing is called {{{name}}}"))),
                },
            })
        };
        let Some((before, rest)) = text.split_once('{') else { return Ok(text.to_owned()) };
        let (name, after) = rest.split_once('}').ok_or_else(|| io::Error::other("{ without }"))?;
        Ok(format!("{before}{}{}", value(name)?, self.fill(after, ids)?))
    }
}

/// A root filesystem: nothing in it but traps.
fn make_image(image: &Path, probe: &Path) -> io::Result<()> {
    for folder in ["", "open", "usr", "usr/bin"] {
        fs::create_dir(image.join(folder))?;
        set_mode(&image.join(folder), 0o755)?;
    }
    set_mode(&image.join("open"), 0o1777)?;
    fs::write(image.join("sacrifice"), "nobody may change this file\n")?;
    set_mode(&image.join("sacrifice"), 0o444)?;
    fs::copy(probe, image.join("suid"))?;
    set_mode(&image.join("suid"), 0o755)
}

impl Drop for Kept {
    fn drop(&mut self) {
        let _ = self.sleeper.kill();
        let _ = self.sleeper.wait();
        let _ = Command::new(&self.probe).args(["--shm", "drop", &self.sysv_key.to_string()]).status();
        let _ = fs::remove_dir_all(&self.folder);
        for path in &self.elsewhere {
            let _ = fs::remove_file(path);
        }
    }
}
