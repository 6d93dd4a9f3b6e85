//! Who makes the sandboxes, and which user ids there are for them.

use super::programs::{self, find_anywhere};
use super::{degraded, missing, ok, required};
use cofferdam_core::Check;
use cofferdam_linux::launcher::default_runtime_folder;
use cofferdam_linux::slots::{self, FIRST_ID, IDS_PER_SLOT, SLOTS};
use cofferdam_linux::sys;
use std::fs::read_to_string;
use std::path::PathBuf;

const GROUP: &str = "identity";

/// The ids that sandboxes made by root take.
const FIRST: u64 = FIRST_ID as u64;
const COUNT: u64 = SLOTS as u64 * IDS_PER_SLOT as u64;

/// What root needs to have, by its bit: to make namespaces and devices, to become the sandbox's users, and to end
/// processes that are theirs.
const NEEDED: [(&str, u32); 6] =
    [("KILL", 5), ("SETGID", 6), ("SETUID", 7), ("SETPCAP", 8), ("SYS_ADMIN", 21), ("MKNOD", 27)];

/// The user that this process runs as.
#[derive(Debug)]
pub(super) struct Identity {
    pub(super) uid: u32,
    /// From /etc/passwd, where it is in there.
    pub(super) name: Option<String>,
    pub(super) home: Option<PathBuf>,
    status: String,
}

impl Identity {
    pub(super) fn of_this_process() -> Self {
        let uid = sys::geteuid();
        let passwd = read_to_string("/etc/passwd").unwrap_or_default();
        let (name, home) = parse_passwd(&passwd, uid).unzip();
        let status = read_to_string("/proc/self/status").unwrap_or_default();
        Self { uid, name, home, status }
    }

    pub(super) fn is_root(&self) -> bool {
        self.uid == 0
    }

    #[cfg(test)]
    pub(super) fn for_tests(uid: u32) -> Self {
        Self { uid, name: Some("ann".to_owned()), home: None, status: String::new() }
    }
}

pub(super) fn checks(identity: &Identity) -> Vec<Check> {
    let read = |path| read_to_string(path).unwrap_or_default();
    let folder = default_runtime_folder().join("slots");
    if identity.is_root() {
        return vec![
            ok(GROUP, "user", "root"),
            required(capabilities(&identity.status)),
            required(id_range(&read("/proc/self/uid_map"), &read("/proc/self/gid_map"))),
            foreign_ranges(&read("/etc/subuid"), &read("/etc/subgid")),
            set_aside(&slots::list_set_aside(&folder)),
        ];
    }
    let name = identity.name.as_deref().unwrap_or("no name");
    vec![
        ok(GROUP, "user", format!("{} ({name}), rootless", identity.uid)),
        helper("newuidmap", &identity.status),
        helper("newgidmap", &identity.status),
        sub_ids(identity, "/etc/subuid", &read("/etc/subuid"), "--add-subuids"),
        sub_ids(identity, "/etc/subgid", &read("/etc/subgid"), "--add-subgids"),
        set_aside(&slots::list_set_aside(&folder)),
    ]
}

/// The name and the home of a uid.
fn parse_passwd(text: &str, uid: u32) -> Option<(String, PathBuf)> {
    text.lines().find_map(|line| {
        let fields: Vec<&str> = line.split(':').collect();
        let &[name, _, id, _, _, home, ..] = fields.as_slice() else { return None };
        (id.parse() == Ok(uid)).then(|| (name.to_owned(), PathBuf::from(home)))
    })
}

/// A line of /proc/PID/status.
fn status_field<'s>(status: &'s str, name: &str) -> Option<&'s str> {
    status.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':')).map(str::trim)
}

fn capabilities(status: &str) -> Check {
    let effective = status_field(status, "CapEff").and_then(|hex| u64::from_str_radix(hex, 16).ok());
    let Some(effective) = effective else {
        return missing(GROUP, "capabilities", "/proc/self/status does not tell", "mount /proc");
    };
    let lacks = |bit: &u32| effective & 1 << bit == 0;
    let lacking: Vec<_> = NEEDED.iter().filter(|(_, bit)| lacks(bit)).map(|(name, _)| *name).collect();
    if lacking.is_empty() {
        return ok(GROUP, "capabilities", "all that are needed");
    }
    let add: Vec<_> = lacking.iter().map(|name| format!("--cap-add {name}")).collect();
    let fix =
        format!("give this process CAP_{}; in Docker: docker run {}", lacking.join(", CAP_"), add.join(" "));
    missing(GROUP, "capabilities", format!("without CAP_{}", lacking.join(", CAP_")), fix)
}

/// Whether an id map (inside, outside, count per line) has the whole range on its inside.
fn covers(map: &str, first: u64, count: u64) -> bool {
    map.lines().any(|line| {
        let numbers: Vec<u64> = line.split_whitespace().filter_map(|n| n.parse().ok()).collect();
        matches!(numbers[..], [inside, _, many] if inside <= first && first + count <= inside.saturating_add(many))
    })
}

/// Root of a user namespace has only the ids that were mapped into it.
fn id_range(uid_map: &str, gid_map: &str) -> Check {
    let range = format!("{FIRST} to {}", FIRST + COUNT - 1);
    if covers(uid_map, FIRST, COUNT) && covers(gid_map, FIRST, COUNT) {
        return ok(GROUP, "sandbox ids", range);
    }
    let fix = "run as root outside of the user namespace: without rootless Docker or Podman, and without userns-remap";
    missing(GROUP, "sandbox ids", format!("{range} are not mapped into this user namespace"), fix)
}

/// One entry of /etc/subuid or /etc/subgid: a user's name or number, the first id, how many.
fn parse_sub_ids(text: &str) -> impl Iterator<Item = (&str, u64, u64)> {
    text.lines().filter_map(|line| {
        let mut fields = line.trim().split(':');
        let user = fields.next().filter(|user| !user.is_empty() && !user.starts_with('#'))?;
        Some((user, fields.next()?.parse().ok()?, fields.next()?.parse().ok()?))
    })
}

/// Ranges of sandboxes of which something could not be ended.
fn set_aside(list: &[(u32, String)]) -> Check {
    const NAME: &str = "ids set aside";
    let Some((first, reason)) = list.first() else { return ok(GROUP, NAME, "none") };
    let numbers: Vec<String> = list.iter().take(8).map(|(number, _)| number.to_string()).collect();
    let more = if list.len() > numbers.len() { " and more" } else { "" };
    let (numbers, count) = (numbers.join(", "), list.len());
    degraded(
        GROUP,
        NAME,
        format!("{count} of {SLOTS}, number {numbers}{more}; of number {first}: {reason}"),
        format!("see what is left in the cgroups s{first} and so on, end it, and restart the machine"),
    )
}

fn foreign_ranges(subuid: &str, subgid: &str) -> Check {
    let mut all = parse_sub_ids(subuid).chain(parse_sub_ids(subgid));
    let overlap =
        all.find(|(_, first, count)| *first < FIRST + COUNT && FIRST < first.saturating_add(*count));
    match overlap {
        None => ok(GROUP, "ids of others", "no user was given ids of sandboxes"),
        Some((user, first, count)) => degraded(
            GROUP,
            "ids of others",
            format!("{user} was given {first} to {}, which sandboxes use", first + count - 1),
            format!("move the range of {user} in /etc/subuid and /etc/subgid below {FIRST}"),
        ),
    }
}

/// Without it a sandbox has one id: init and payload share it, and the isolation report says so.
fn helper(name: &str, status: &str) -> Check {
    let Some(path) = find_anywhere(name) else {
        return degraded(GROUP, name, "not found", programs::install("uidmap"));
    };
    if status_field(status, "NoNewPrivs") == Some("1") {
        let fix = "start cofferdam without no_new_privs (systemd: NoNewPrivileges=no)";
        return degraded(GROUP, name, "no_new_privs keeps it from working", fix);
    }
    ok(GROUP, name, path.display().to_string())
}

/// Ids that the rootless launcher asks for, for all of its sandboxes together.
const WANTED: u64 = 65_535;

fn sub_ids(identity: &Identity, file: &'static str, text: &str, option: &str) -> Check {
    let number = identity.uid.to_string();
    let Some(user) = identity.name.as_deref() else {
        // newuidmap refuses whom it cannot name, whatever the file says.
        let fix = format!("sudo useradd --uid {number} NAME");
        return degraded(GROUP, file, format!("uid {number} has no name in /etc/passwd"), fix);
    };
    let own = parse_sub_ids(text).filter(|(owner, ..)| *owner == user || *owner == number);
    let largest = own.max_by_key(|(_, _, count)| *count);
    // Beyond what useradd hands out by itself on a machine with few users.
    let fix = format!("sudo usermod {option} 1000000-1065535 {user}");
    match largest {
        Some((_, first, count)) if count >= WANTED => {
            ok(GROUP, file, format!("{first} to {}", first.saturating_add(count) - 1))
        }
        Some((_, first, count)) => {
            degraded(GROUP, file, format!("{count} ids from {first}; {WANTED} are wanted"), fix)
        }
        None => degraded(GROUP, file, format!("no entry for {user}"), fix),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use cofferdam_core::CheckState;

    #[test]
    fn passwd_gives_name_and_home() {
        let text = "root:x:0:0:root:/root:/bin/bash\nbroken\nann:x:1000:1000:Ann,,,:/home/ann:/bin/sh\n";
        assert_eq!(parse_passwd(text, 1000), Some(("ann".to_owned(), "/home/ann".into())));
        assert_eq!(parse_passwd(text, 7), None);
    }

    #[test]
    fn sub_ids_are_read_and_nonsense_skipped() {
        let text = "# comment\nann:100000:65536\n\nbob:x:1\n1001:165536:65536\n";
        let all: Vec<_> = parse_sub_ids(text).collect();
        assert_eq!(all, [("ann", 100_000, 65_536), ("1001", 165_536, 65_536)]);
    }

    #[test]
    fn a_user_is_found_by_name_or_number() {
        let ann = Identity::for_tests(1000);
        let state = |text| sub_ids(&ann, "/etc/subuid", text, "--add-subuids").state;
        assert_eq!(state("ann:100000:65536"), CheckState::Ok);
        assert_eq!(state("1000:100000:65536"), CheckState::Ok);
        assert_eq!(state("ann:100000:10"), CheckState::Degraded);
        let none = sub_ids(&ann, "/etc/subuid", "bob:1:2", "--add-subuids");
        assert_eq!(none.fix.as_deref(), Some("sudo usermod --add-subuids 1000000-1065535 ann"));
        let nameless = Identity { name: None, ..Identity::for_tests(1000) };
        let none = sub_ids(&nameless, "/etc/subuid", "", "--add-subuids");
        assert_eq!(none.fix.as_deref(), Some("sudo useradd --uid 1000 NAME"));
    }

    #[test]
    fn ranges_that_were_set_aside_are_named() {
        assert_eq!(set_aside(&[]).state, CheckState::Ok);
        let check = set_aside(&[(7, "its init does not die".to_owned()), (9, "x".to_owned())]);
        assert_eq!(check.state, CheckState::Degraded);
        assert_eq!(check.found, "2 of 4094, number 7, 9; of number 7: its init does not die");
        assert!(check.fix.unwrap().contains("s7"));
    }

    #[test]
    fn missing_capabilities_are_named() {
        let all = "Name:\tx\nCapEff:\t000001ffffffffff\n";
        assert_eq!(capabilities(all).state, CheckState::Ok);
        let docker = capabilities("CapEff:\t00000000a80425fb\n");
        assert_eq!(docker.found, "without CAP_SYS_ADMIN");
        assert!(docker.fix.unwrap().ends_with("docker run --cap-add SYS_ADMIN"));
        assert_eq!(capabilities("").state, CheckState::Missing);
    }

    #[test]
    fn ids_must_be_mapped_as_a_whole() {
        let all = "         0          0 4294967295\n";
        assert_eq!(id_range(all, all).state, CheckState::Ok);
        let some = "0 1000 1\n1 100000 65536\n";
        assert_eq!(id_range(all, some).state, CheckState::Missing);
        assert!(!covers("garbage\n1 2\n", 0, 1));
    }

    #[test]
    fn ranges_of_others_are_seen_where_they_overlap() {
        assert_eq!(foreign_ranges("ann:100000:65536\n", "").state, CheckState::Ok);
        let overlap = foreign_ranges("", "ann:1879048000:65536\n");
        assert!(overlap.state == CheckState::Degraded && overlap.found.starts_with("ann was given"));
    }
}
