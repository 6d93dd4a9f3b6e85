//! What a process inside sees of its walls. It only looks; what that means is decided by the host (`report`).

use nix::sched::{CloneFlags, unshare};
use rustix::io::Errno;
use rustix::process::{Uid, setpriority_user};
use serde::{Deserialize, Serialize};
use std::fs;
use std::io::Read;

/// A user id that nothing in a container runs as.
const NOBODY_AT_ALL: u32 = 54_321;

/// Namespaces that a report speaks of, by the names of `/proc/self/ns`.
pub const NAMESPACES: [&str; 7] = ["user", "pid", "mnt", "net", "ipc", "uts", "cgroup"];

#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Facts {
    /// `/proc/self/status`.
    pub status: String,
    /// `/proc/self/mountinfo`.
    pub mounts: String,
    /// `/proc/self/uid_map`.
    pub uid_map: String,
    /// `/proc/self/limits`.
    pub limits: String,
    /// The names of `/proc/self/ns` and what they point to.
    pub namespaces: Vec<(String, String)>,
    /// Network interfaces.
    pub interfaces: Vec<String>,
    /// The names in `/dev`.
    pub devices: Vec<String>,
    /// Descriptors that are open besides the standard ones and the two that looking takes.
    pub extra_fds: usize,
    /// Files of `/proc` that tell of the host and can be read (or written), of those in `HOST_FILES`.
    pub open_host_files: Vec<String>,
    /// Whether the memory of process 1 can be opened.
    pub reads_init: bool,
    /// What unshare(CLONE_NEWUSER) answered: an errno, or 0.
    pub unshare: i32,
    /// What setting the priority of a user without processes answered: the kernel says ESRCH, our filter EPERM.
    pub priority_of_another: i32,
    pub leads_session: bool,
    pub is_victim: bool,
    /// Bytes and inodes of the filesystem at `/workspace`, and of the one at `/tmp`.
    pub workspace: Option<(u64, u64)>,
    pub tmp: Option<(u64, u64)>,
    /// The device numbers of both.
    pub shares_disk: bool,
}

impl Facts {
    /// Whether whoever looked is by that another process than before: it asked for a namespace, and has it now.
    pub(crate) fn changed_it(&self) -> bool {
        self.unshare == 0
    }
}

/// What tells of the host or acts on it.
pub const HOST_FILES: [&str; 7] = [
    "/proc/kcore",
    "/proc/keys",
    "/proc/timer_list",
    "/proc/sched_debug",
    "/proc/sysrq-trigger",
    "/sys/firmware/acpi",
    "/proc/scsi/scsi",
];

fn text(path: &str) -> String {
    fs::read_to_string(path).unwrap_or_default()
}

fn names(path: &str) -> Vec<String> {
    let entries = fs::read_dir(path).into_iter().flatten().flatten();
    entries.map(|entry| entry.file_name().to_string_lossy().into_owned()).collect()
}

fn room(path: &str) -> Option<(u64, u64)> {
    let stat = rustix::fs::statvfs(path).ok()?;
    Some((stat.f_blocks * stat.f_frsize, stat.f_files))
}

/// Looks at everything, from where a program would be.
pub(crate) fn look(is_victim: bool) -> Facts {
    let link = |name: &str| fs::read_link(format!("/proc/self/ns/{name}")).ok();
    let namespaces = NAMESPACES
        .iter()
        .filter_map(|name| Some(((*name).to_owned(), link(name)?.to_string_lossy().into_owned())));
    let interfaces = text("/proc/net/dev");
    let interfaces = interfaces.lines().filter_map(|line| Some(line.split_once(':')?.0.trim().to_owned()));
    let device = |path: &str| rustix::fs::stat(path).map(|stat| stat.st_dev).ok();
    let has_content = |path: &&&str| {
        fs::File::open(path).is_ok_and(|mut file| file.read(&mut [0]).is_ok_and(|read| read > 0))
    };
    let errno = |result: Result<(), Errno>| result.err().map_or(0, Errno::raw_os_error);
    Facts {
        status: text("/proc/self/status"),
        mounts: text("/proc/self/mountinfo"),
        uid_map: text("/proc/self/uid_map"),
        limits: text("/proc/self/limits"),
        namespaces: namespaces.collect(),
        interfaces: interfaces.collect(),
        devices: names("/dev"),
        // Stdin, stdout and stderr, the socket that this is told on, and the folder that is being read.
        extra_fds: names("/proc/self/fd").len().saturating_sub(5),
        open_host_files: HOST_FILES.iter().filter(has_content).map(|path| (*path).to_owned()).collect(),
        reads_init: fs::File::open("/proc/1/mem").is_ok(),
        unshare: unshare(CloneFlags::CLONE_NEWUSER).err().map_or(0, |errno| errno as i32),
        priority_of_another: errno(setpriority_user(Uid::from_raw(NOBODY_AT_ALL), 0).map(drop)),
        leads_session: rustix::process::getsid(None).ok() == Some(rustix::process::getpid()),
        is_victim,
        workspace: room("/workspace"),
        tmp: room("/tmp"),
        shares_disk: device("/workspace") == device("/tmp"),
    }
}
