//! For the attack suite alone: a bundle without some of its walls.

use crate::runtime::{Kind, Runtime};
use cofferdam_core::Control;
use cofferdam_linux::ControlSet;
use serde_json::{Value, json};

const NAMESPACES: [(Control, &str); 5] = [
    (Control::PidNamespace, "pid"),
    (Control::NetNamespace, "network"),
    (Control::IpcNamespace, "ipc"),
    (Control::UtsNamespace, "uts"),
    (Control::CgroupNamespace, "cgroup"),
];

/// Enough to be noticed: some of those that containers often have, and the one that is almost root.
const CAPABILITIES: [&str; 5] =
    ["CAP_CHOWN", "CAP_DAC_OVERRIDE", "CAP_SETUID", "CAP_NET_RAW", "CAP_SYS_ADMIN"];

const RESTRICTING: [&str; 3] = ["nosuid", "nodev", "noexec"];

/// Whether it is to have no ids of its own, and with them no user namespace.
pub(crate) fn has_no_range(without: ControlSet) -> bool {
    without.has(Control::UserNamespace) || without.has(Control::OwnHostUids)
}

pub(crate) fn changed(mut config: Value, runtime: &Runtime, without: ControlSet) -> (Value, Runtime) {
    let mut runtime = runtime.clone();
    let is_out = |control| without.has(control);
    if let Some(list) = config["linux"]["namespaces"].as_array_mut() {
        let out = |name: &Value| NAMESPACES.iter().any(|(control, known)| is_out(*control) && name == known);
        list.retain(|namespace| !out(&namespace["type"]));
    }
    if is_out(Control::UtsNamespace) {
        config["hostname"] = Value::Null;
    }
    // One is made of the other's list, and the helper's processes inherit both.
    if is_out(Control::Seccomp) || is_out(Control::InitSeccomp) {
        config["linux"]["seccomp"] = Value::Null;
    }
    if is_out(Control::NoNewPrivs) {
        config["process"]["noNewPrivileges"] = json!(false);
    }
    if is_out(Control::Capabilities) {
        let all = ["bounding", "effective", "permitted", "inheritable", "ambient"];
        all.iter().for_each(|set| config["process"]["capabilities"][set] = json!(CAPABILITIES));
    }
    if is_out(Control::Groups) {
        config["process"]["user"]["additionalGids"] = json!([4, 27]);
    }
    if is_out(Control::Rlimits) || is_out(Control::CoreDumpsOff) {
        config["process"]["rlimits"] = json!([]);
    }
    if is_out(Control::SwapOff) {
        config["linux"]["resources"]["memory"]["swap"] = json!(-1);
    }
    if is_out(Control::OomVictim) {
        config["process"]["oomScoreAdj"] = json!(0);
    }
    if is_out(Control::ReadOnlyRoot) {
        config["root"]["readonly"] = json!(false);
    }
    if is_out(Control::ProcMasked) {
        config["linux"]["maskedPaths"] = json!([]);
    }
    if is_out(Control::ProcReadOnly) {
        config["linux"]["readonlyPaths"] = json!([]);
    }
    if is_out(Control::DevicesLimit) {
        config["linux"]["resources"]["devices"] = json!([{ "allow": true, "access": "rwm" }]);
    }
    let mounts = config["mounts"].as_array_mut().map(std::mem::take).unwrap_or_default();
    config["mounts"] = mounts.into_iter().map(|mount| changed_mount(mount, without)).collect();
    // gVisor has neither the word nor the keyring.
    if is_out(Control::Keyring) && runtime.kind == Kind::Namespaces {
        runtime.run_flags.push("--no-new-keyring".to_owned());
    }
    (config, runtime)
}

fn changed_mount(mut mount: Value, without: ControlSet) -> Value {
    if without.has(Control::MinimalDev) && mount["destination"] == "/dev" {
        return json!({ "destination": "/dev", "type": "bind", "source": "/dev", "options": ["rbind"] });
    }
    if without.has(Control::MountFlags)
        && let Some(options) = mount["options"].as_array_mut()
    {
        options.retain(|option| RESTRICTING.iter().all(|word| option != word));
    }
    mount
}

#[cfg(test)]
mod tests {
    use super::*;

    fn whole() -> Value {
        json!({
            "hostname": "sandbox",
            "root": {"readonly": true},
            "process": {"noNewPrivileges": true, "capabilities": {}, "user": {}, "rlimits": [{}], "oomScoreAdj": 1000},
            "mounts": [{"destination": "/dev", "type": "tmpfs", "options": ["nosuid"]}],
            "linux": {
                "namespaces": [
                    {"type": "pid"}, {"type": "network"}, {"type": "ipc"}, {"type": "uts"}, {"type": "cgroup"}
                ],
                "seccomp": {}, "maskedPaths": ["/proc/keys"], "readonlyPaths": ["/proc/sys"],
                "resources": {"memory": {"swap": 1}, "devices": []},
            },
        })
    }

    /// One that changes nothing would leave an attack that is held, and say that the wall was not needed.
    #[test]
    fn every_wall_that_is_left_out_is_another_bundle() {
        let runtime = Runtime {
            program: "runc".into(),
            kind: Kind::Namespaces,
            flags: Vec::new(),
            run_flags: Vec::new(),
        };
        let without = |walls: &[Control]| {
            let (config, runtime) = changed(whole(), &runtime, ControlSet::of(walls));
            (config, runtime.run_flags)
        };
        assert_eq!(without(&[]), (whole(), Vec::new()));
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
            Control::Keyring,
        ];
        for wall in walls {
            assert_ne!(without(&[wall]), (whole(), Vec::new()), "{wall:?}");
        }
    }
}
