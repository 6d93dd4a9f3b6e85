//! The bundle's `config.json`: what the runtime is to make.

use crate::place::Place;
use crate::runtime::Kind;
use cofferdam_backend::SandboxSpec;
use cofferdam_core::Limits;
use cofferdam_guest::{PROGRAM, SECRETS, SECRETS_BYTES, SECRETS_FILES, UID};
use cofferdam_linux::contained::{masked_in_proc, rlimits};
use cofferdam_linux::seccomp::{Profile, oci_json};
use cofferdam_linux::slots::IDS_PER_SLOT;
use serde_json::{Value, json};
use std::sync::LazyLock;

/// The helper is a process, too, and is not the caller's.
pub(crate) const HELPER_PIDS: u32 = 1;

/// What gVisor's own kernel and its file server need in threads of the host, beside those of the sandbox.
const GVISOR_THREADS: u32 = 512;

const CPU_PERIOD_US: u64 = 100_000;

/// What of `/proc` is root's alone, and covered besides what native sandboxes have covered.
const MASKED: [&str; 4] = ["/proc/kcore", "/proc/latency_stats", "/proc/timer_list", "/proc/timer_stats"];

const READ_ONLY: [&str; 1] = ["/proc/sysrq-trigger"];

/// The same for every sandbox.
static SECCOMP: LazyLock<Value> =
    LazyLock::new(|| serde_json::from_str(&oci_json(Profile::PayloadOneId)).unwrap_or_default());

fn masked() -> Vec<&'static str> {
    [&masked_in_proc()[..], &MASKED].concat()
}

/// The host's limit of processes: behind gVisor, it is one of threads of its kernel.
pub(crate) fn pids(kind: Kind, limits: &Limits) -> u32 {
    match kind {
        Kind::Namespaces => limits.pids + HELPER_PIDS,
        Kind::Gvisor => limits.pids.saturating_mul(2).saturating_add(GVISOR_THREADS),
    }
}

fn resources(kind: Kind, limits: &Limits) -> Value {
    json!({
        // Memory and swap together: none of the latter.
        "memory": { "limit": limits.memory_bytes, "swap": limits.memory_bytes },
        "cpu": {
            "quota": u64::from(limits.cpus.millis()) * CPU_PERIOD_US / 1000,
            "period": CPU_PERIOD_US,
        },
        "pids": { "limit": pids(kind, limits) },
        "devices": [{ "allow": false, "access": "rwm" }],
    })
}

fn bind(destination: &str, source: &std::path::Path, extra: &[&str]) -> Value {
    let options: Vec<&str> = ["bind", "rw", "nosuid", "nodev"].iter().chain(extra).copied().collect();
    json!({ "destination": destination, "type": "bind", "source": source, "options": options })
}

/// A place for secrets, which are written when the container runs: no file of the host ever has them.
fn secrets() -> Value {
    let options = [
        "nosuid".to_owned(),
        "nodev".to_owned(),
        "noexec".to_owned(),
        "mode=0700".to_owned(),
        format!("size={SECRETS_BYTES}"),
        format!("nr_inodes={SECRETS_FILES}"),
        format!("uid={UID}"),
        format!("gid={UID}"),
    ];
    json!({ "destination": SECRETS, "type": "tmpfs", "source": "tmpfs", "options": options })
}

/// The whole file. `first_id` is the first of the host's ids of a sandbox that has a range of its own.
pub(crate) fn config(
    kind: Kind,
    spec: &SandboxSpec,
    place: &Place,
    cgroup: &str,
    first_id: Option<u32>,
    helper_arguments: Vec<String>,
) -> Value {
    let args: Vec<String> = [PROGRAM.to_owned()].into_iter().chain(helper_arguments).collect();
    let rlimit = |(name, value): (&str, u64)| json!({ "type": format!("RLIMIT_{}", name.to_uppercase()), "hard": value, "soft": value });
    let rlimits: Vec<Value> = rlimits().into_iter().map(rlimit).collect();
    let mut namespaces = vec!["pid", "network", "ipc", "uts", "mount"];
    if kind == Kind::Namespaces {
        namespaces.push("cgroup");
    }
    namespaces.extend(first_id.map(|_| "user"));
    let namespaces: Vec<Value> = namespaces.iter().map(|name| json!({ "type": name })).collect();
    let map = first_id
        .map_or(json!([]), |first| json!([{ "containerID": 0, "hostID": first, "size": IDS_PER_SLOT }]));
    let mut linux = json!({
        "namespaces": namespaces,
        "uidMappings": map,
        "gidMappings": map,
        "cgroupsPath": cgroup,
        "resources": resources(kind, &spec.limits),
        "maskedPaths": masked(),
        "readonlyPaths": READ_ONLY,
        "rootfsPropagation": "private",
    });
    // gVisor's kernel has filters of its own towards the host, and takes none for its first process.
    if kind == Kind::Namespaces {
        linux["seccomp"] = SECCOMP.clone();
    }
    json!({
        "ociVersion": "1.0.2",
        "process": {
            "user": { "uid": UID, "gid": UID },
            "args": args,
            "env": [],
            "cwd": "/",
            "noNewPrivileges": true,
            "capabilities": { "bounding": [], "effective": [], "permitted": [], "inheritable": [], "ambient": [] },
            "rlimits": rlimits,
            "oomScoreAdj": 500,
        },
        "root": { "path": place.root(), "readonly": true },
        "hostname": "sandbox",
        "mounts": [
            { "destination": "/proc", "type": "proc", "source": "proc", "options": ["nosuid", "noexec", "nodev"] },
            { "destination": "/dev", "type": "tmpfs", "source": "tmpfs",
              "options": ["nosuid", "noexec", "strictatime", "mode=755", "size=64k"] },
            { "destination": "/dev/pts", "type": "devpts", "source": "devpts",
              "options": ["nosuid", "noexec", "newinstance", "ptmxmode=0666", "mode=0620", "gid=5"] },
            bind("/dev/shm", &place.files("shm"), &["noexec"]),
            bind("/workspace", &place.files("workspace"), &[]),
            bind("/tmp", &place.files("tmp"), &[]),
            secrets(),
        ],
        "linux": linux,
    })
}
