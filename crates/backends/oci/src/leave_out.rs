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
