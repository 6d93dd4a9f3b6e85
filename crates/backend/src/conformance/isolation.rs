//! What code inside can see and be. Whether it can break out is for the attack suite of each backend.

use super::support::*;
use crate::{Backend, Sandbox, SandboxSpec};
use cofferdam_core::{Control, ControlState, Disk, IsolationMode, Limits, SandboxId};

pub async fn the_report_is_complete(backend: &dyn Backend) {
    let sandbox = sandbox(backend).await;
    let report = sandbox.isolation().await.expect("a report");
    assert_eq!(report.backend, backend.name());
    for control in Control::ALL {
        let rows: Vec<_> = report.controls.iter().filter(|row| row.control == control).collect();
        assert_eq!(rows.len(), 1, "{control}: {rows:?}");
        assert!(!rows[0].note.is_empty(), "{control}: how it is known, or why it is not so");
    }
    assert_eq!(report.controls.len(), Control::ALL.len());
}

pub async fn mandatory_controls_are_enforced(backend: &dyn Backend) {
    let sandbox = sandbox(backend).await;
    let report = sandbox.isolation().await.expect("a report");
    assert_eq!(report.mode, IsolationMode::Strict);
    for row in report.controls.iter().filter(|row| row.control.mandatory()) {
        assert_eq!(row.state, ControlState::Enforced, "{row:?}");
    }
    assert_eq!(report.state(Control::ReadOnlyRoot), ControlState::Enforced);
}

pub async fn best_effort_is_reported_as_such(backend: &dyn Backend) {
    let isolation = IsolationMode::BestEffort;
    let sandbox = create(backend, SandboxSpec { isolation, ..sandbox_spec() }).await;
    assert_eq!(sandbox.isolation().await.expect("a report").mode, isolation);
    assert_still_runs(&*sandbox).await;
}

pub async fn processes_are_unprivileged(backend: &dyn Backend) {
    let sandbox = sandbox(backend).await;
    let status = sh_ok(&*sandbox, "cat /proc/self/status").await;
    let field = |name: &str| {
        let line = status.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'));
        line.unwrap_or_else(|| panic!("no {name} in {status}")).split_whitespace().collect::<Vec<_>>()
    };
    assert_eq!(field("Uid"), ["1000"; 4]);
    assert_eq!(field("Gid"), ["1000"; 4]);
    assert!(field("Groups").iter().all(|group| *group == "1000"), "{:?}", field("Groups"));
    for set in ["CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb"] {
        assert_eq!(field(set), ["0000000000000000"], "{set}");
    }
    assert_eq!(field("NoNewPrivs"), ["1"]);
    assert_eq!(field("Seccomp"), ["2"]);
}

pub async fn only_stdio_is_open(backend: &dyn Backend) {
    let sandbox = sandbox(backend).await;
    // The fourth is the folder that `ls` itself has open.
    let output = run(&*sandbox, process(["/bin/ls", "/proc/self/fd"])).await;
    assert_eq!(output.stdout(), "0\n1\n2\n3\n", "{output:?}");
}

pub async fn only_own_processes_are_seen(backend: &dyn Backend) {
    let (sandbox, other) = (sandbox(backend).await, sandbox(backend).await);
    let others = start_ready(&*other, sh("echo ready; sleep 1000")).await;
    // A shell, `ls`, `grep`, and perhaps the first process.
    let count = sh_ok(&*sandbox, "ls /proc | grep -c '^[0-9]'").await;
    let count: u32 = count.trim().parse().expect("a count");
    assert!((2..=5).contains(&count), "{count} processes");
    drop(others);
}

pub async fn devices_are_the_harmless_ones(backend: &dyn Backend) {
    let sandbox = sandbox(backend).await;
    let script = "echo x > /dev/null && head -c 4 /dev/zero | wc -c && head -c 4 /dev/urandom | wc -c
        head -c 4 /dev/random | wc -c; echo x > /dev/full || echo full";
    let output = run(&*sandbox, sh(script)).await;
    assert_eq!(output.stdout(), "4\n4\n4\nfull\n", "{output:?}");
    let output =
        run(&*sandbox, sh("ls -d /dev/mem /dev/kmsg /dev/kvm /dev/fuse /dev/sda* /dev/vda* /dev/loop*"))
            .await;
    assert_eq!(output.stdout(), "", "{output:?}");
}

pub async fn the_hostname_is_not_the_hosts(backend: &dyn Backend) {
    let sandbox = sandbox(backend).await;
    let inside = sh_ok(&*sandbox, "uname -n").await;
    let outside = std::fs::read_to_string("/proc/sys/kernel/hostname").expect("the host's name");
    assert!(!inside.trim().is_empty() && inside != outside, "{inside:?}");
}

pub async fn the_user_has_a_name(backend: &dyn Backend) {
    let sandbox = sandbox(backend).await;
    let passwd = sh_ok(&*sandbox, "cat /etc/passwd").await;
    let users: Vec<_> = passwd.lines().filter(|line| line.split(':').nth(2) == Some("1000")).collect();
    assert_eq!(users.len(), 1, "{passwd}");
    let name = users[0].split(':').next().unwrap_or_default();
    assert_eq!(sh_ok(&*sandbox, "id -un").await.trim(), name);
    let hosts = sh_ok(&*sandbox, "cat /etc/hosts").await;
    assert!(hosts.lines().any(|line| line.starts_with("127.0.0.1") && line.contains("localhost")), "{hosts}");
}

pub async fn the_root_is_read_only(backend: &dyn Backend) {
    let sandbox = sandbox(backend).await;
    for file in ["/new", "/usr/new", "/usr/bin/new", "/etc/new"] {
        let output = run(&*sandbox, sh(&format!("echo x > {file}"))).await;
        assert!(output.failed(), "{file}: {output:?}");
    }
    // The user could not write there either way, so look at the mount itself.
    let root = mounts(&*sandbox).await.into_iter().find(|mount| mount.point == "/").expect("a root");
    assert!(root.options.split(',').any(|option| option == "ro"), "{root:?}");
}

pub async fn a_writable_root_is_gone_afterwards(backend: &dyn Backend) {
    for _ in 0..2 {
        let Some(sandbox) = writable_sandbox(backend).await else { return };
        assert_ne!(
            sandbox.isolation().await.expect("a report").state(Control::ReadOnlyRoot),
            ControlState::Enforced
        );
        sh_ok(&*sandbox, "test ! -e /usr/marker && test ! -e /marker && test ! -e /opt/made").await;
        for file in ["/usr/marker", "/marker"] {
            write(&*sandbox, file, 0o644, b"host\n").await.expect(file);
            assert_eq!(
                sh_ok(&*sandbox, &format!("echo inside >> {file}; cat {file}")).await,
                "host\ninside\n"
            );
        }
        sandbox.make_folder(&path("/opt/made")).await.expect("a folder");
        sh_ok(&*sandbox, "echo x > /opt/made/file; mkdir /opt/made/folder").await;
        sandbox.destroy().await.expect("its end");
    }
    let sandbox = sandbox(backend).await;
    sh_ok(&*sandbox, "test ! -e /usr/marker && test ! -e /marker && test ! -e /opt/made").await;
}

pub async fn a_writable_root_is_the_users(backend: &dyn Backend) {
    let Some(sandbox) = writable_sandbox(backend).await else { return };
    let script =
        "touch /usr/local/new /top && mkdir -p /data/deep /usr/lib/made && echo x > /usr/lib/made/file
        echo '127.0.0.2 added' >> /etc/hosts && grep -c added /etc/hosts && grep -c localhost /etc/hosts
        rm /usr/bin/env && test ! -e /usr/bin/env && mv /usr/bin/id /usr/bin/id2 && id2 -u
        chmod 700 /usr/bin/id2 && stat -c '%a %u' /usr/bin/id2
        folder=$(ls -d /usr/share/*/ | head -n 1); rm -r $folder && mkdir $folder && ls -A $folder | wc -l
        ln -s /usr/local/new /etc/link && readlink /etc/link";
    let output = sh_ok(&*sandbox, script).await;
    assert_eq!(output, "1\n2\n1000\n700 1000\n0\n/usr/local/new\n");
    let next = writable_sandbox(backend).await.expect("another one");
    let script = "test -x /usr/bin/env && test -x /usr/bin/id && ! grep added /etc/hosts
        ls -d /usr/local/new /top /data /usr/lib/made /usr/bin/id2 /etc/link";
    let output = run(&*next, sh(script)).await;
    assert!(output.failed() && output.stdout().is_empty(), "{output:?}");
}

pub async fn a_writable_root_keeps_the_other_walls(backend: &dyn Backend) {
    let Some(sandbox) = writable_sandbox(backend).await else { return };
    let report = sandbox.isolation().await.expect("a report");
    for row in report.controls.iter().filter(|row| row.control.mandatory()) {
        assert_eq!(row.state, ControlState::Enforced, "{row:?}");
    }
    for mount in mounts(&*sandbox).await {
        let has = |wanted: &str| mount.options.split(',').any(|option| option == wanted);
        assert!(has("nosuid"), "{mount:?}");
        assert!(
            has("nodev") || mount.point.starts_with("/dev") || mount.point.starts_with("/proc/"),
            "{mount:?}"
        );
        assert!(has("ro") || !["/proc", "/dev"].contains(&mount.point.as_str()), "{mount:?}");
    }
    let script = "for file in /dev/new /proc/new /proc/sys/kernel/hostname /sys/new; do
            { echo x > $file; } 2> /dev/null && echo $file
        done; mknod /usr/device c 1 3 || mknod /usr/device b 7 0; chown 0 /usr/bin/env";
    let output = run(&*sandbox, sh(script)).await;
    assert!(output.failed() && output.stdout().is_empty(), "{output:?}");
    // A set-uid program of somebody else is one of one's own.
    assert_eq!(sh_ok(&*sandbox, "cp /usr/bin/id /usr/bin/me; chmod 6755 /usr/bin/me; me -u").await, "1000\n");
}

pub async fn a_writable_root_on_disk_counts_as_disk(backend: &dyn Backend) {
    if !backend.capabilities().disk || !backend.capabilities().writable_root {
        return;
    }
    let limits = Limits { disk: Disk::OnDisk { bytes: 128 * MIB }, ..limits(64 * MIB) };
    let sandbox = create(backend, SandboxSpec { limits, writable_root: true, ..sandbox_spec() }).await;
    sh_ok(&*sandbox, "dd if=/dev/zero of=/usr/local/large bs=1M count=90; rm /usr/local/large /usr/bin/env")
        .await;
    let output = run(&*sandbox, sh("dd if=/dev/zero of=/usr/local/big bs=1M count=500")).await;
    assert!(output.failed() && output.stderr().contains("No space left"), "{output:?}");
    let output = run(&*sandbox, sh("dd if=/dev/zero of=/tmp/more bs=1M count=2")).await;
    assert!(output.failed() && output.stderr().contains("No space left"), "{output:?}");
    assert_still_runs(&*sandbox).await;
}

pub async fn a_writable_root_counts_as_disk(backend: &dyn Backend) {
    let Some(sandbox) = writable_sandbox(backend).await else { return };
    sandbox.make_folder(&path("/opt/made")).await.expect("a folder");
    let output = run(&*sandbox, sh("dd if=/dev/zero of=/opt/made/big bs=1M count=500")).await;
    assert!(output.failed() && output.stderr().contains("No space left"), "{output:?}");
    let output = run(&*sandbox, sh("dd if=/dev/zero of=/workspace/more bs=1M count=1")).await;
    assert!(output.failed(), "the root's files are not counted with the others: {output:?}");
    assert_still_runs(&*sandbox).await;
}

pub async fn sandboxes_start_empty(backend: &dyn Backend) {
    for _ in 0..2 {
        let sandbox = sandbox(backend).await;
        assert_eq!(sh_ok(&*sandbox, "ls -A /workspace; ls -A /tmp; ls -A /dev/shm").await, ".artifacts\n");
        sh_ok(&*sandbox, "echo x > /workspace/left; echo x > /tmp/left; echo x > /dev/shm/left").await;
        sandbox.destroy().await.expect("its end");
    }
}

pub async fn sandboxes_do_not_see_each_others_files(backend: &dyn Backend) {
    let (first, second) = (sandbox(backend).await, sandbox(backend).await);
    sh_ok(&*first, "echo x > /workspace/mine; echo x > /tmp/mine; echo x > /dev/shm/mine").await;
    assert_eq!(sh_ok(&*second, "ls -A /workspace; ls -A /tmp; ls -A /dev/shm").await, ".artifacts\n");
    assert_not_found("the first one's file", read(&*second, "/workspace/mine").await);
}

/// One line of `/proc/self/mountinfo`.
#[derive(Debug)]
struct Mount {
    /// Which part of the filesystem is mounted.
    root: String,
    point: String,
    options: String,
    filesystem: String,
    source: String,
    super_options: String,
}

async fn mounts(sandbox: &dyn Sandbox) -> Vec<Mount> {
    let mountinfo = sh_ok(sandbox, "cat /proc/self/mountinfo").await;
    let parse = |line: &str| {
        let (mount, filesystem) = line.split_once(" - ")?;
        let mut mount = mount.split(' ').skip(3).map(str::to_owned);
        let mut filesystem = filesystem.split(' ').map(str::to_owned);
        Some(Mount {
            root: mount.next()?,
            point: mount.next()?,
            options: mount.next()?,
            filesystem: filesystem.next()?,
            source: filesystem.next()?,
            super_options: filesystem.next()?,
        })
    };
    mountinfo.lines().map(|line| parse(line).unwrap_or_else(|| panic!("{line}"))).collect()
}

/// Whether a path on a mount's line can be one of the host's: what the sandbox itself is made of is not.
fn is_of_the_host(path: &str) -> bool {
    path.contains('/') && !path.starts_with("/files/")
}

async fn assert_no_host_paths(sandbox: &dyn Sandbox, id: &SandboxId) {
    for mount in mounts(sandbox).await {
        let what = format!("{mount:?}");
        // A part of a filesystem of its own, such as `/null` of a /dev, tells nothing.
        let is_own = ["tmpfs", "devtmpfs", "proc"].contains(&mount.filesystem.as_str())
            || mount.source.starts_with("/dev/loop");
        let is_harmless = is_own && mount.root.matches('/').count() <= 2;
        assert!(mount.root == "/" || is_harmless, "part of a filesystem of the host: {what}");
        let layers = ["lowerdir", "lowerdir+", "upperdir", "workdir"];
        let mut options = mount.super_options.split(',').filter_map(|option| option.split_once('='));
        let shown = options.find(|(key, value)| layers.contains(key) && is_of_the_host(value));
        assert_eq!(shown, None, "{what}");
        assert!(!mount.source.starts_with('/') || mount.source.starts_with("/dev/"), "{what}");
        assert!(!what.contains(id.as_str()), "{what}");
    }
}

pub async fn mounts_show_no_host_paths(backend: &dyn Backend) {
    let can = backend.capabilities();
    for (on_disk, writable_root) in [(false, false), (true, false), (false, true), (true, true)] {
        if (on_disk && !can.disk) || (writable_root && !can.writable_root) {
            continue;
        }
        let mut spec = SandboxSpec { writable_root, ..sandbox_spec() };
        if on_disk {
            spec.limits.disk = Disk::OnDisk { bytes: 64 * MIB };
        }
        let id = spec.id.clone();
        assert_no_host_paths(&*create(backend, spec).await, &id).await;
    }
}

pub async fn a_disk_is_proven_and_out_of_reach(backend: &dyn Backend) {
    let Some(sandbox) = sandbox_on_disk(backend, 64 * MIB, 64 * MIB).await else { return };
    let report = sandbox.isolation().await.expect("a report");
    for row in report.controls.iter().filter(|row| row.control.mandatory()) {
        assert_eq!(row.state, ControlState::Enforced, "{row:?}");
    }
    let output = run(&*sandbox, sh("ls -d /dev/loop* /dev/block /sys; mknod b b 7 0")).await;
    assert!(output.failed() && output.stdout().is_empty(), "{output:?}");
}

pub async fn disks_start_empty_and_apart(backend: &dyn Backend) {
    let Some(first) = sandbox_on_disk(backend, 64 * MIB, 64 * MIB).await else { return };
    let look = "ls -A /workspace; ls -A /tmp; ls -A /dev/shm";
    sh_ok(&*first, "echo x > /workspace/mine; echo x > /tmp/mine; echo x > /dev/shm/mine").await;
    let second = sandbox_on_disk(backend, 64 * MIB, 64 * MIB).await.expect("a second disk");
    assert_eq!(sh_ok(&*second, look).await, ".artifacts\n");
    first.destroy().await.expect("its end");
    let third = sandbox_on_disk(backend, 64 * MIB, 64 * MIB).await.expect("a third disk");
    assert_eq!(sh_ok(&*third, look).await, ".artifacts\n");
}

/// The control is not mandatory; a sandbox that shows more than `/` must not claim it.
pub async fn cgroups_show_no_host_paths(backend: &dyn Backend) {
    let sandbox = sandbox(backend).await;
    let cgroups = sh_ok(&*sandbox, "cat /proc/self/cgroup").await;
    let hidden = !cgroups.is_empty() && cgroups.lines().all(|line| line.ends_with(":/"));
    let state = sandbox.isolation().await.expect("a report").state(Control::CgroupNamespace);
    assert!(hidden || state != ControlState::Enforced, "{cgroups}");
}
