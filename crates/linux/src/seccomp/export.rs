//! The table as the JSON that container runtimes and daemons take, so that there is one list and not two.
//!
//! Their language has no "unless": a call that is refused for some arguments and open otherwise is open there.
//! Whoever starts a process in such a container installs the compiled filter besides, which is exact.

use super::Profile;
use super::rules::{Rule, Sense, Test};
use super::table::{Action, table};
use std::fmt::Write;

/// The filter of a profile in the form of the OCI runtime specification, `linux.seccomp`.
pub fn oci_json(profile: Profile) -> String {
    let mut rules = Vec::new();
    let mut names = [const { Vec::new() }; 3];
    for entry in table(profile) {
        let name = entry.call.name();
        match entry.action {
            Action::Allow => names[0].push(name),
            Action::Eperm => names[1].push(name),
            Action::Enosys => names[2].push(name),
            Action::Rule(rule) if rule.sense == Sense::RefuseIf => names[0].push(name),
            // Where no clause holds the answer is EPERM in the filter, and that of an unknown call here.
            Action::Rule(rule) => rules.extend(alternatives(rule).iter().map(|args| allow_if(name, args))),
        }
    }
    let [allowed, refused, absent] = names;
    rules.insert(0, group(&allowed, r#""action":"SCMP_ACT_ALLOW""#));
    rules.push(group(&refused, &errno(libc::EPERM)));
    rules.push(group(&absent, &errno(libc::ENOSYS)));
    format!(
        r#"{{"defaultAction":"SCMP_ACT_ERRNO","defaultErrnoRet":{},"architectures":["SCMP_ARCH_X86_64"],"syscalls":[{}]}}"#,
        libc::ENOSYS,
        rules.join(",")
    )
}

fn errno(number: i32) -> String {
    format!(r#""action":"SCMP_ACT_ERRNO","errnoRet":{number}"#)
}

fn group(names: &[&str], action: &str) -> String {
    let names: Vec<String> = names.iter().map(|name| format!(r#""{name}""#)).collect();
    format!(r#"{{"names":[{}],{action}}}"#, names.join(","))
}

/// One value for each argument that is looked at.
type Arguments = Vec<(u32, u32, u32)>;

/// The clauses of a rule, with every list of values taken apart: a rule there compares an argument once.
fn alternatives(rule: &Rule) -> Vec<Arguments> {
    let mut all = Vec::new();
    for clause in rule.clauses {
        let mut some = vec![Vec::new()];
        for Test { arg, mask, values } in *clause {
            some = some
                .iter()
                .flat_map(|begun| values.iter().map(|value| [&begun[..], &[(*arg, *mask, *value)]].concat()))
                .collect();
        }
        all.extend(some);
    }
    all
}

fn allow_if(name: &str, arguments: &Arguments) -> String {
    let mut args = String::new();
    for (position, (index, mask, value)) in arguments.iter().enumerate() {
        let comma = if position > 0 { "," } else { "" };
        let op = "SCMP_CMP_MASKED_EQ";
        let _ = write!(args, r#"{comma}{{"index":{index},"value":{mask},"valueTwo":{value},"op":"{op}"}}"#);
    }
    format!(r#"{{"names":["{name}"],"action":"SCMP_ACT_ALLOW","args":[{args}]}}"#)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_call_of_the_table_is_in_it_with_its_answer() {
        for profile in Profile::ALL {
            let json = oci_json(profile);
            for entry in table(profile) {
                let name = format!(r#""{}""#, entry.call.name());
                assert!(json.contains(&name), "{name} is missing for {profile:?}");
            }
            let open = json.split(r#""action":"SCMP_ACT_ALLOW""#).next().unwrap();
            for (call, is_open) in [("read", true), ("ioctl", true), ("mount", false), ("bpf", false)] {
                assert_eq!(open.contains(&format!(r#""{call}""#)), is_open, "{call} for {profile:?}");
            }
            assert!(!open.contains(r#""socket""#), "sockets are open for some arguments alone");
        }
    }

    #[test]
    fn arguments_are_compared_by_their_low_half() {
        let json = oci_json(Profile::Payload);
        let socket = |family: i32| {
            let first = format!(r#"[{{"index":0,"value":4294967295,"valueTwo":{family},"#);
            json.contains(&format!(r#"{{"names":["socket"],"action":"SCMP_ACT_ALLOW","args":{first}"#))
        };
        assert!(json.contains(r#"{"names":["personality"],"action":"SCMP_ACT_ALLOW","args":[{"index":0,"value":4294967295,"valueTwo":0,"op":"SCMP_CMP_MASKED_EQ"}]}"#));
        assert!(socket(libc::AF_UNIX) && socket(libc::AF_INET6), "{json}");
        assert!(!socket(libc::AF_PACKET), "no rule opens packet sockets");
    }
}
