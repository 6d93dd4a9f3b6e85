//! What is asked of the daemon for one sandbox. Everything that can be narrowed is.

use crate::backend::DockerOptions;
use crate::engine::Engine;
use crate::mounts::{Room, Staged};
use crate::prepare::Prepared;
use bollard::models::{
    ContainerCreateBody, HostConfig, HostConfigCgroupnsModeEnum, HostConfigLogConfig, ResourcesUlimits,
};
use cofferdam_backend::{OomScope, SandboxSpec};
use cofferdam_core::Limits;
use cofferdam_guest::agent::Options;
use cofferdam_guest::{PROGRAM, SECRETS, SECRETS_BYTES, SECRETS_FILES, UID};
use cofferdam_linux::contained::{masked_in_proc, rlimits};
use std::collections::HashMap;

pub(crate) const LABEL_SANDBOX: &str = "cofferdam.sandbox";
pub(crate) const LABEL_OWNER: &str = "cofferdam.owner";

/// The helper is a process, too, and is not the caller's.
pub(crate) const HELPER_PIDS: i64 = 1;

const CPU_PERIOD_US: i64 = 100_000;

/// A file in memory for every 16 KiB: with less, empty files would take more memory than full ones.
const BYTES_PER_INODE: u64 = 16 << 10;

pub(crate) fn name(spec: &SandboxSpec) -> String {
    format!("cofferdam-{}", spec.id)
}

/// How the room for files is divided: two filesystems cannot share one limit here, and together they must not
/// hold more than was asked for.
pub(crate) fn tmp_bytes(disk: u64) -> u64 {
    disk / 8
}

fn inodes(bytes: u64) -> u64 {
    (bytes / BYTES_PER_INODE).max(64)
}

/// What a workspace may hold that is not made by the daemon.
pub(crate) fn workspace_room(limits: &Limits) -> Room {
    let disk = limits.disk.bytes();
    let bytes = disk - tmp_bytes(disk);
    Room { bytes, files: inodes(bytes) }
}

fn tmpfs(engine: Engine, bytes: u64, mode: &str) -> String {
    let common = format!("rw,exec,nosuid,nodev,size={bytes},mode={mode}");
    of_user(engine, common, inodes(bytes))
}

/// Memory that is the container's user's.
fn of_user(engine: Engine, common: String, files: u64) -> String {
    match engine {
        Engine::Docker => format!("{common},nr_inodes={files},uid={UID},gid={UID}"),
        // It knows no number of files, and `U` for the container's user.
        Engine::Podman => format!("{common},U"),
    }
}

/// A place for secrets, which are written when the container runs: nothing that describes it has them.
fn secrets(engine: Engine) -> String {
    let common = format!("rw,noexec,nosuid,nodev,size={SECRETS_BYTES},mode=0700");
    of_user(engine, common, SECRETS_FILES)
}

/// What Podman mounts for itself over a read-only root, writable and of any size, unless something else is there.
const OF_PODMAN: [&str; 2] = ["/run", "/var/tmp"];

/// As many processes as Podman itself may have: it sets a limit for its containers that it may not be allowed to.
/// All sandboxes share it, as they share a user; each has its own by its cgroup.
const PODMAN_PROCESSES: i64 = 32768;

/// What of `/proc` is root's alone; and of `/sys`, which native sandboxes do not have, all but the groups, by which the
/// helper counts kills for want of memory.
const MASKED: [&str; 14] = [
    "/proc/kcore",
    "/proc/latency_stats",
    "/proc/timer_list",
    "/proc/timer_stats",
    "/sys/block",
    "/sys/bus",
    "/sys/class",
    "/sys/dev",
    "/sys/devices",
    "/sys/firmware",
    "/sys/hypervisor",
    "/sys/kernel",
    "/sys/module",
    "/sys/power",
];

/// The limits that can change later, too.
pub(crate) fn cpu_quota(limits: &Limits) -> i64 {
    i64::from(limits.cpus.millis()) * CPU_PERIOD_US / 1000
}

pub(crate) fn ulimit(name: &str, value: i64) -> ResourcesUlimits {
    ResourcesUlimits { name: Some(name.to_owned()), soft: Some(value), hard: Some(value) }
}

fn host_config(
    spec: &SandboxSpec,
    options: &DockerOptions,
    volumes: &[String],
    seccomp: String,
    staged: Option<&Staged>,
) -> HostConfig {
    let (limits, engine) = (&spec.limits, options.engine);
    let memory = limits.memory_bytes as i64;
    let disk = limits.disk.bytes();
    let tmp = tmp_bytes(disk);
    let mut tmpfs_mounts = HashMap::from([
        ("/workspace".to_owned(), tmpfs(engine, disk - tmp, "0755")),
        ("/tmp".to_owned(), tmpfs(engine, tmp, "1777")),
        (SECRETS.to_owned(), secrets(engine)),
    ]);
    // An image may ask for volumes, which would be disk of the host without a limit.
    for volume in volumes {
        tmpfs_mounts.entry(volume.clone()).or_insert_with(|| tmpfs(engine, tmp, "0755"));
    }
    let mut ulimits: Vec<_> = rlimits().into_iter().map(|(name, value)| ulimit(name, value as i64)).collect();
    if engine == Engine::Podman {
        ulimits.push(ulimit("nproc", PODMAN_PROCESSES));
        for path in OF_PODMAN {
            let closed = || "rw,noexec,nosuid,nodev,size=65536,mode=0755".to_owned();
            tmpfs_mounts.entry(path.to_owned()).or_insert_with(closed);
        }
    }
    if let Some(staged) = staged {
        tmpfs_mounts.retain(|path, _| !staged.has_target(path));
    }
    let mut security = vec!["no-new-privileges".to_owned(), seccomp];
    let masked = [&masked_in_proc()[..], &MASKED].concat();
    let masked_paths = match engine {
        Engine::Docker => Some(masked.into_iter().map(str::to_owned).collect()),
        // It has a word of its own for it, and adds to what it covers anyway.
        Engine::Podman => {
            security.push(format!("mask={}", masked.join(":")));
            None
        }
    };
    HostConfig {
        network_mode: Some("none".to_owned()),
        readonly_rootfs: Some(true),
        cap_drop: Some(vec!["ALL".to_owned()]),
        security_opt: Some(security),
        masked_paths,
        pids_limit: Some(i64::from(limits.pids) + HELPER_PIDS),
        memory: Some(memory),
        // Memory and swap together: none of the latter.
        memory_swap: Some(memory),
        cpu_period: Some(CPU_PERIOD_US),
        cpu_quota: Some(cpu_quota(limits)),
        tmpfs: Some(tmpfs_mounts),
        mounts: staged.map(Staged::binds),
        shm_size: Some((disk / 16) as i64),
        ipc_mode: Some("private".to_owned()),
        cgroupns_mode: Some(HostConfigCgroupnsModeEnum::PRIVATE),
        ulimits: Some(ulimits),
        // Its processes raise theirs to the top, so that the helper goes last.
        oom_score_adj: Some(500),
        // What the helper says is for us alone, and is not to be on a disk.
        log_config: Some(HostConfigLogConfig { typ: Some("none".to_owned()), config: None }),
        auto_remove: Some(true),
        runtime: options.runtime.clone(),
        privileged: Some(false),
        ..HostConfig::default()
    }
}

/// The whole request.
pub(crate) fn body(
    spec: &SandboxSpec,
    options: &DockerOptions,
    prepared: &Prepared,
    owner: &str,
    seccomp: String,
    staged: Option<&Staged>,
) -> ContainerCreateBody {
    let helper =
        Options { oom_ends_all: spec.oom_scope == OomScope::Sandbox, lost_after: options.lost_after };
    ContainerCreateBody {
        image: Some(prepared.name.clone()),
        entrypoint: Some(vec![PROGRAM.to_owned()]),
        cmd: Some(helper.arguments()),
        user: Some(format!("{UID}:{UID}")),
        working_dir: Some("/".to_owned()),
        hostname: Some("sandbox".to_owned()),
        attach_stdin: Some(true),
        attach_stdout: Some(true),
        attach_stderr: Some(true),
        open_stdin: Some(true),
        // When the one that is attached goes, the helper reads the end and goes, too.
        stdin_once: Some(true),
        tty: Some(false),
        labels: Some(HashMap::from([
            (LABEL_SANDBOX.to_owned(), spec.id.to_string()),
            (LABEL_OWNER.to_owned(), owner.to_owned()),
        ])),
        host_config: Some(host_config(spec, options, &prepared.volumes, seccomp, staged)),
        ..ContainerCreateBody::default()
    }
}
