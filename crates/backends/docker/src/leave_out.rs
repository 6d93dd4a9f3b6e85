//! For the attack suite alone: a request without some of its walls.

use crate::engine::Engine;
use bollard::models::{ContainerCreateBody, HostConfigCgroupnsModeEnum};
use cofferdam_core::Control;
use cofferdam_linux::ControlSet;

const RESTRICTING: [&str; 3] = ["nosuid", "nodev", "noexec"];

pub(crate) fn changed(
    mut body: ContainerCreateBody,
    engine: Engine,
    without: ControlSet,
) -> ContainerCreateBody {
    let is_out = |control| without.has(control);
    let host = || Some("host".to_owned());
    let Some(config) = body.host_config.as_mut() else { return body };
    if is_out(Control::PidNamespace) {
        config.pid_mode = host();
    }
    if is_out(Control::NetNamespace) {
        config.network_mode = host();
    }
    if is_out(Control::IpcNamespace) {
        (config.ipc_mode, config.shm_size) = (host(), None);
    }
    if is_out(Control::UtsNamespace) {
        (config.uts_mode, body.hostname) = (host(), None);
    }
    if is_out(Control::CgroupNamespace) {
        config.cgroupns_mode = Some(HostConfigCgroupnsModeEnum::HOST);
    }
    if is_out(Control::Capabilities) {
        (config.cap_drop, config.cap_add) = (None, Some(vec!["ALL".to_owned()]));
    }
    if is_out(Control::Groups) {
        config.group_add = Some(vec!["4".to_owned(), "27".to_owned()]);
    }
    let options = config.security_opt.get_or_insert_default();
    if is_out(Control::NoNewPrivs) {
        options.retain(|option| !option.starts_with("no-new-privileges"));
    }
    // One is made of the other's list, and the helper's processes inherit both.
    if is_out(Control::Seccomp) || is_out(Control::InitSeccomp) {
        options.retain(|option| !option.starts_with("seccomp"));
        options.push("seccomp=unconfined".to_owned());
    }
    if is_out(Control::ProcMasked) {
        options.retain(|option| !option.starts_with("mask="));
    }
    if engine == Engine::Podman && (is_out(Control::ProcMasked) || is_out(Control::ProcReadOnly)) {
        options.push("unmask=ALL".to_owned());
    }
    if is_out(Control::ProcMasked) {
        config.masked_paths = Some(Vec::new());
    }
    if is_out(Control::ProcReadOnly) {
        config.readonly_paths = Some(Vec::new());
    }
    if is_out(Control::Rlimits) || is_out(Control::CoreDumpsOff) {
        let limits = config.ulimits.get_or_insert_default();
        limits.retain(|limit| limit.name.as_deref() == Some("nproc"));
        // Podman asks for more by itself than it may be allowed to give.
        if engine == Engine::Podman {
            limits.push(crate::container::ulimit("nofile", 16384));
        }
    }
    if is_out(Control::SwapOff) {
        config.memory_swap = Some(-1);
    }
    if is_out(Control::OomVictim) {
        config.oom_score_adj = Some(0);
    }
    if is_out(Control::ReadOnlyRoot) {
        config.readonly_rootfs = Some(false);
    }
    if is_out(Control::MinimalDev) {
        config.binds = Some(vec!["/dev:/dev".to_owned()]);
    }
    if is_out(Control::DevicesLimit) {
        config.device_cgroup_rules = Some(vec!["a *:* rwm".to_owned()]);
    }
    if is_out(Control::MountFlags) {
        for options in config.tmpfs.get_or_insert_default().values_mut() {
            let kept = options.split(',').filter(|option| !RESTRICTING.contains(option));
            *options = kept.chain(["suid", "dev"]).collect::<Vec<_>>().join(",");
        }
    }
    body
}

#[cfg(test)]
mod tests {
    use super::*;
    use bollard::models::HostConfig;
    use std::collections::HashMap;

    fn whole() -> ContainerCreateBody {
        let words = |words: &[&str]| Some(words.iter().map(|word| (*word).to_owned()).collect());
        let host_config = HostConfig {
            cap_drop: words(&["ALL"]),
            security_opt: words(&["no-new-privileges", "seccomp={}", "mask=/proc/keys"]),
            masked_paths: words(&["/proc/keys"]),
            readonly_paths: words(&["/proc/sys"]),
            ulimits: Some(vec![crate::container::ulimit("core", 0), crate::container::ulimit("nproc", 9)]),
            memory_swap: Some(1),
            oom_score_adj: Some(1000),
            readonly_rootfs: Some(true),
            tmpfs: Some(HashMap::from([("/tmp".to_owned(), "rw,nosuid,size=1".to_owned())])),
            ..HostConfig::default()
        };
        ContainerCreateBody { host_config: Some(host_config), ..ContainerCreateBody::default() }
    }

    /// One that changes nothing would leave an attack that is held, and say that the wall was not needed.
    #[test]
    fn every_wall_that_is_left_out_is_another_request() {
        let walls = [
            Control::PidNamespace,
            Control::NetNamespace,
            Control::IpcNamespace,
            Control::UtsNamespace,
            Control::CgroupNamespace,
            Control::Capabilities,
            Control::Groups,
            Control::NoNewPrivs,
            Control::Seccomp,
            Control::ProcMasked,
            Control::ProcReadOnly,
            Control::Rlimits,
            Control::SwapOff,
            Control::OomVictim,
            Control::ReadOnlyRoot,
            Control::MinimalDev,
            Control::DevicesLimit,
            Control::MountFlags,
        ];
        for engine in [Engine::Docker, Engine::Podman] {
            assert_eq!(changed(whole(), engine, ControlSet::EMPTY), whole());
            for wall in walls {
                let without = ControlSet::of(&[wall]);
                assert_ne!(changed(whole(), engine, without), whole(), "{wall:?} on {}", engine.name());
            }
        }
    }
}
