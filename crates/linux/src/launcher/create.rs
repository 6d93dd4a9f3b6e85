//! Making one sandbox: everything that needs the host's privileges, and everything that allocates.

use super::messages::CreateRequest;
use super::rootless::Ids;
use super::{Launcher, Live, layers, network, staging};
use crate::init::{self, InitPlan, Overlay, Upper};
use crate::slots::{self, IDS_PER_SLOT};
use crate::stage::Stage;
use crate::sys::{self, Errno};
use crate::{ControlSet, clone, seccomp, socket};
use cofferdam_core::Control;
use std::ffi::CString;
use std::fmt::Write;
use std::os::fd::{AsRawFd, OwnedFd, RawFd};

type Failed = (Stage, Errno);

fn c_string(text: impl Into<Vec<u8>>) -> Result<CString, Failed> {
    CString::new(text).map_err(|_| (Stage::Clone, Errno(libc::EINVAL)))
}

/// A disk that is not attached yet, and the folder at its top.
struct Disk {
    mount: OwnedFd,
    top: OwnedFd,
}

/// The descriptors that init needs.
struct PlannedFds {
    control: RawFd,
    sync: RawFd,
    disk: Option<RawFd>,
}

impl PlannedFds {
    /// All that stay open, sorted.
    fn keep(&self) -> [RawFd; 6] {
        let mut keep = [0, 1, 2, self.control, self.sync, self.disk.unwrap_or(self.sync)];
        keep.sort_unstable();
        keep
    }
}

/// The ids of a sandbox inside.
const INIT_ID: u32 = 0;
pub(super) const PAYLOAD_ID: u32 = 1000;

impl Launcher {
    pub(super) fn create(&mut self, request: &CreateRequest, fds: &mut socket::Fds) -> Result<(), Failed> {
        let mut request = request.clone();
        if !cfg!(feature = "leave-out") {
            request.leave_out = ControlSet::EMPTY;
            request.fail_at = None;
        }
        // An overlay without an upper layer is read-only whatever its flags: this is the control left out.
        request.writable_root |= request.leave_out.has(Control::ReadOnlyRoot);
        if request.fail_at == Some(Stage::Clone) {
            return Err((Stage::Clone, Errno(libc::EIO)));
        }
        let mut next = |i| fds.take(i).ok_or((Stage::Clone, Errno(libc::EBADMSG)));
        let (control, lock) = (next(0)?, next(1)?);
        let disk = if request.on_disk { Some(self.open_disk(&request, next(2)?)?) } else { None };
        let network = self.spare_network.take();
        let mut proven = ControlSet::EMPTY;
        proven.set(Control::CleanEnvironment, self.clean_environment);
        let (pid, pidfd, alive) = self.clone_init(&request, network, proven, &control, disk.as_ref())?;
        let live = Live {
            pid,
            pidfd,
            slot: request.slot,
            lock,
            disk: disk.map(|disk| disk.top),
            _alive: alive,
            is_dead: false,
            unwanted_since: None,
        };
        self.live.insert(request.sandbox, live);
        Ok(())
    }

    fn clone_init(
        &self,
        request: &CreateRequest,
        spare: Option<OwnedFd>,
        proven: ControlSet,
        control: &OwnedFd,
        disk: Option<&Disk>,
    ) -> Result<(i32, OwnedFd, OwnedFd), Failed> {
        let (sync, go) = sys::pipe().map_err(|e| (Stage::Sync, e))?;
        let wants_network = !request.leave_out.has(Control::NetNamespace);
        let network = spare.filter(|_| wants_network);
        let fds = PlannedFds {
            control: control.as_raw_fd(),
            sync: sync.as_raw_fd(),
            disk: disk.map(|disk| disk.mount.as_raw_fd()),
        };
        let plan = self.plan(request, fds, network.is_some(), proven)?;
        // Attached until the end of this function, by when the sandbox has its own.
        let _layers = if maps_layers(request) { Some(self.stage_layers(request)?) } else { None };
        let mut flags = namespaces(request.leave_out);
        if let Some(network) = &network {
            network::enter(network).map_err(|e| (Stage::Clone, e))?;
            flags &= !(libc::CLONE_NEWNET as u64);
        }
        let owner = self.owner(request);
        // The owner of the user namespace is whom the kernel charges for what is made in it.
        sys::seteuid(owner).map_err(|e| (Stage::Clone, e))?;
        if self.ids != Ids::Host {
            // The change hides the process, and the child's id map with it, from all but the host's root.
            sys::prctl(libc::PR_SET_DUMPABLE, 1, 0).map_err(|e| (Stage::Clone, e))?;
        }
        // SAFETY: the launcher has one thread, and the child only runs init, which allocates nothing.
        let forked = unsafe { clone::fork_into(flags, self.init_group.as_ref().map(AsRawFd::as_raw_fd)) };
        if matches!(forked, Ok(clone::Forked::Child)) {
            init::run(&plan);
        }
        sys::seteuid(0).map_err(|e| (Stage::Clone, e))?;
        if let (Some(_), Some(home)) = (&network, &self.home_network) {
            network::enter(home).map_err(|e| (Stage::Clone, e))?;
        }
        let clone::Forked::Parent { pid, pidfd } = forked.map_err(|e| (Stage::Clone, e))? else {
            return Err((Stage::Clone, Errno(libc::EINVAL)));
        };
        let mapped = match request.fail_at {
            Some(Stage::IdMap) => Err(Errno(libc::EIO)),
            _ => map_ids(pid, self.ids, owner, request),
        };
        let outside = self.namespaces.get_or_init(staging::own_namespaces).to_bytes();
        if let Err(errno) = mapped.and_then(|()| sys::write(go.as_raw_fd(), &outside).map(drop)) {
            let _ = sys::pidfd_kill(pidfd.as_raw_fd(), libc::SIGKILL);
            let _ = sys::wait_pid(pid);
            return Err((Stage::IdMap, errno));
        }
        Ok((pid, pidfd, go))
    }

    /// The id, outside, of a sandbox's root.
    fn owner(&self, request: &CreateRequest) -> u32 {
        let shares_ids = request.leave_out.has(Control::OwnHostUids);
        match self.ids {
            Ids::Host if !shares_ids => slots::first_id(request.slot),
            Ids::Pairs if !shares_ids => pair(request.slot).0,
            _ => 0,
        }
    }

    /// Takes a disk that the host made, and gives it to the sandbox's root.
    fn open_disk(&self, request: &CreateRequest, mount: OwnedFd) -> Result<Disk, Failed> {
        let owner = self.owner(request);
        if let Some(first) = request.disk_first_id {
            let mapped = match self.ids {
                Ids::Host => layers::map_disk(&mount, first, owner),
                // Only the host's root may, and only it has disks.
                _ => Err(Errno(libc::EPERM)),
            };
            mapped.map_err(|errno| (Stage::Files, errno))?;
        }
        let top = sys::open(mount.as_raw_fd(), c".", libc::O_RDONLY | libc::O_DIRECTORY, 0);
        let given = top.and_then(|top| sys::fchown(top.as_raw_fd(), owner, owner).map(|()| top));
        given.map(|top| Disk { mount, top }).map_err(|errno| (Stage::Files, errno))
    }

    fn stage_layers(&self, request: &CreateRequest) -> Result<layers::Staged, Failed> {
        if request.fail_at == Some(Stage::Layers) {
            return Err((Stage::Layers, Errno(libc::EIO)));
        }
        let names = self.images.get(&request.image).ok_or((Stage::Root, Errno(libc::ENOENT)))?;
        layers::stage(request.image, names, self.owner(request)).map_err(|errno| (Stage::Layers, errno))
    }

    fn plan(
        &self,
        request: &CreateRequest,
        fds: PlannedFds,
        has_network: bool,
        proven: ControlSet,
    ) -> Result<InitPlan<'_>, Failed> {
        let names = self.images.get(&request.image).ok_or((Stage::Root, Errno(libc::ENOENT)))?;
        let image_folder = match maps_layers(request) {
            true => layers::folder(request.image),
            false => format!("/i{}", request.image),
        };
        Ok(InitPlan {
            control: fds.control,
            sync: fds.sync,
            disk: fds.disk,
            has_files: request.disk_first_id.is_some(),
            has_network,
            shares_counts: self.ids != Ids::Host,
            keep: fds.keep(),
            hostname: c_string(request.hostname.as_str())?,
            image_folder: c_string(image_folder)?,
            overlays: overlays(request.image, names, request.writable_root)?,
            files_options: c_string(files_options(request))?,
            files_bytes: request.files_bytes,
            files_inodes: request.files_inodes,
            writable_root: request.writable_root,
            terminal: request.terminal,
            landlock_abi: self.landlock_abi,
            last_capability: self.last_capability,
            launcher_keyring: self.keyring,
            init_filter: seccomp::init(),
            payload_filter: if self.ids == Ids::One { seccomp::payload_one_id() } else { seccomp::payload() },
            init_id: if self.ids == Ids::One { PAYLOAD_ID } else { INIT_ID },
            payload_id: PAYLOAD_ID,
            required: required(self.ids, request.required),
            proven,
            leave_out: request.leave_out,
            fail_at: request.fail_at,
        })
    }
}

/// Whether the layers are to look like the user's own: for a root that was asked to be writable, and not where a
/// test only leaves out that it is read-only.
fn maps_layers(request: &CreateRequest) -> bool {
    request.writable_root && !request.leave_out.has(Control::ReadOnlyRoot)
}

fn namespaces(leave_out: ControlSet) -> u64 {
    let each = [
        (Control::UserNamespace, libc::CLONE_NEWUSER),
        (Control::PidNamespace, libc::CLONE_NEWPID),
        (Control::MountNamespace, libc::CLONE_NEWNS),
        (Control::NetNamespace, libc::CLONE_NEWNET),
        (Control::IpcNamespace, libc::CLONE_NEWIPC),
        (Control::UtsNamespace, libc::CLONE_NEWUTS),
    ];
    let wanted = each.iter().filter(|(control, _)| !leave_out.has(*control));
    wanted.fold(0, |flags, (_, flag)| flags | *flag as u64)
}

/// With one id for all, a process is as good as the owner of this program's file, which it can reach through
/// /proc/self/exe. Nothing but Landlock keeps it from that.
fn required(ids: Ids, mut required: ControlSet) -> ControlSet {
    if ids == Ids::One && !required.is_empty() {
        required.insert(Control::Landlock);
    }
    required
}

/// The two ids, in the launcher's own user namespace, of a sandbox's init and payload.
fn pair(slot: u32) -> (u32, u32) {
    (1 + slot % slots::SLOTS * 2, 2 + slot % slots::SLOTS * 2)
}

fn map_ids(pid: i32, ids: Ids, first: u32, request: &CreateRequest) -> sys::Result<()> {
    if request.leave_out.has(Control::UserNamespace) {
        return Ok(());
    }
    let map = match ids {
        Ids::Host => format!("0 {first} {IDS_PER_SLOT}\n"),
        Ids::Pairs => {
            // An owner of 0 is what is left when a test leaves out the sandbox's own ids.
            let (init, payload) = if first == 0 { (0, 1) } else { pair(request.slot) };
            format!("{INIT_ID} {init} 1\n{PAYLOAD_ID} {payload} 1\n")
        }
        Ids::One => format!("{PAYLOAD_ID} 0 1\n"),
    };
    for file in ["uid_map", "gid_map"] {
        let path = CString::new(format!("/proc/{pid}/{file}")).map_err(|_| Errno(libc::EINVAL))?;
        sys::write_file(sys::CWD, &path, map.as_bytes())?;
    }
    Ok(())
}

fn overlays(image: u32, names: &[String], is_writable: bool) -> Result<Vec<Overlay>, Failed> {
    let device = |layer: &str| -> Result<u64, Failed> {
        let stat = sys::stat_at(sys::CWD, &c_string(format!("/i{image}/{layer}"))?, 0);
        stat.map(|stat| stat.st_dev).map_err(|errno| (Stage::Root, errno))
    };
    let mut overlays = Vec::with_capacity(names.len());
    // Layers above others say what those no longer show, in attributes of the user's: see below.
    let is_layered = names.iter().any(|name| is_lower(name));
    let mut add = |name: &str, target: String, lower: &str, plain_name: &str| {
        let upper = if is_writable { Some(upper(name)?) } else { None };
        let mut options = format!("lowerdir={lower}");
        if is_writable {
            let folder = format!("/files/root/{name}");
            // Without a privilege on the host, an overlay keeps its notes in attributes of the user's.
            let _ = write!(options, ",upperdir={folder}/upper,workdir={folder}/work");
        }
        if is_writable || is_layered {
            options.push_str(",userxattr");
        }
        let (target, options, plain) = (c_string(target)?, c_string(options)?, c_string(plain_name)?);
        overlays.push(Overlay { target, options, plain, plain_device: device(plain_name)?, upper });
        Ok(())
    };
    let mut root = String::from("base:image");
    for name in names.iter().filter(|name| is_lower(name)) {
        root.push(':');
        root.push_str(name);
    }
    add("base", "/new".to_owned(), &root, "image")?;
    for name in names.iter().filter(|name| *name != "base" && *name != "image" && !is_lower(name)) {
        add(name, format!("/new/{name}"), &format!("{name}:empty"), name)?;
    }
    Ok(overlays)
}

/// Whether a layer lies below the one named `image`.
fn is_lower(name: &str) -> bool {
    name.starts_with("image-")
}

/// Where what is written to a part of the root ends up.
fn upper(name: &str) -> Result<Upper, Failed> {
    let folder = format!("/files/root/{name}");
    Ok(Upper {
        upper: c_string(format!("{folder}/upper"))?,
        work: c_string(format!("{folder}/work"))?,
        folder: c_string(folder)?,
    })
}

fn files_options(request: &CreateRequest) -> String {
    let mut options = String::from("mode=0755");
    if !request.leave_out.has(Control::DiskLimit) {
        let _ = write!(options, ",size={}", request.files_bytes);
    }
    if !request.leave_out.has(Control::InodeLimit) {
        let _ = write!(options, ",nr_inodes={}", request.files_inodes);
    }
    options
}
