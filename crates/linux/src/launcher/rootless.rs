//! The launcher without root: it becomes root of a user namespace of its own, once, and from there on works as
//! it does with root.
//!
//! With `newuidmap` and a range in /etc/subuid, that namespace has ids for thousands of sandboxes, two each.
//! Without, it has one: then init and the payload of every sandbox share the user's own id outside.

use crate::clone::{self, Forked};
use crate::sys::{self, Result};
use std::fs;
use std::os::fd::AsRawFd;
use std::process::Command;

/// Which ids sandboxes get.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Ids {
    /// As root: 65,536 host ids each.
    Host,
    /// Two ids each of the launcher's own user namespace.
    Pairs,
    /// One id, which all share.
    One,
}

/// Ids of the launcher's namespace that are asked for; every distribution's default range has as many.
const WANTED: u32 = 65_535;

/// Enters a user namespace of its own, with as many ids as this user may have.
pub(super) fn enter() -> Result<Ids> {
    let (uid, gid) = (sys::geteuid(), sys::getegid());
    let ranges = user_name(uid).and_then(|name| {
        Some((subordinate("/etc/subuid", &name, uid)?, subordinate("/etc/subgid", &name, uid)?))
    });
    let Some((uids, gids)) = ranges.filter(|_| find("newuidmap").is_some() && find("newgidmap").is_some())
    else {
        return enter_with_one(uid, gid);
    };
    let (ready, go) = sys::pipe()?;
    let own = sys::getpid();
    // SAFETY: the launcher has one thread.
    match unsafe { clone::fork_into(0, None) }? {
        Forked::Child => {
            drop(go);
            let mapped = sys::read(ready.as_raw_fd(), &mut [0; 1]) == Ok(1)
                && map("newuidmap", own, uid, uids)
                && map("newgidmap", own, gid, gids);
            sys::exit(i32::from(!mapped))
        }
        Forked::Parent { pid, .. } => {
            sys::unshare(libc::CLONE_NEWUSER)?;
            sys::write(go.as_raw_fd(), b"g")?;
            if sys::wait_pid(pid)? != 0 {
                // Such as where set-uid programs do not work.
                return map_one(uid, gid);
            }
            sys::setgid_all(0)?;
            sys::setuid_all(0)?;
            Ok(Ids::Pairs)
        }
    }
}

fn enter_with_one(uid: u32, gid: u32) -> Result<Ids> {
    sys::unshare(libc::CLONE_NEWUSER)?;
    map_one(uid, gid)
}

/// Maps this user alone, which needs no help.
fn map_one(uid: u32, gid: u32) -> Result<Ids> {
    sys::write_file(sys::CWD, c"/proc/self/setgroups", b"deny")?;
    sys::write_file(sys::CWD, c"/proc/self/uid_map", format!("0 {uid} 1").as_bytes())?;
    sys::write_file(sys::CWD, c"/proc/self/gid_map", format!("0 {gid} 1").as_bytes())?;
    Ok(Ids::One)
}

/// Asks the set-uid helper for the map: root is this user, and the rest are its subordinate ids.
fn map(helper: &str, pid: i32, own: u32, first: u32) -> bool {
    let Some(program) = find(helper) else { return false };
    let numbers = [pid as u32, 0, own, 1, 1, first, WANTED].map(|number| number.to_string());
    Command::new(program).args(numbers).status().is_ok_and(|status| status.success())
}

fn find(program: &str) -> Option<String> {
    let folders = ["/usr/bin", "/bin", "/usr/local/bin", "/usr/sbin", "/sbin"];
    folders.iter().map(|folder| format!("{folder}/{program}")).find(|path| fs::metadata(path).is_ok())
}

fn user_name(uid: u32) -> Option<String> {
    let passwd = fs::read_to_string("/etc/passwd").ok()?;
    parse_user_name(&passwd, uid)
}

fn parse_user_name(passwd: &str, uid: u32) -> Option<String> {
    let uid = uid.to_string();
    let is_it = |line: &&str| line.split(':').nth(2) == Some(uid.as_str());
    passwd.lines().find(is_it)?.split(':').next().map(str::to_owned)
}

/// The first id of a range that is large enough.
fn subordinate(path: &str, name: &str, uid: u32) -> Option<u32> {
    parse_subordinate(&fs::read_to_string(path).ok()?, name, uid)
}

fn parse_subordinate(text: &str, name: &str, uid: u32) -> Option<u32> {
    let uid = uid.to_string();
    text.lines().find_map(|line| {
        let mut fields = line.split(':');
        let owner = fields.next()?;
        let (first, count): (u32, u32) = (fields.next()?.parse().ok()?, fields.next()?.trim().parse().ok()?);
        ((owner == name || owner == uid) && count >= WANTED).then_some(first)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_are_found_by_name_or_number_and_must_be_large_enough() {
        let text = "other:100000:65536\ndev:165536:65536\n1001:300000:65536\nsmall:1:10\n";
        assert_eq!(parse_subordinate(text, "dev", 1000), Some(165_536));
        assert_eq!(parse_subordinate(text, "nameless", 1001), Some(300_000));
        assert_eq!(parse_subordinate(text, "small", 5), None);
        assert_eq!(parse_subordinate("dev:x:y\n", "dev", 1000), None);
    }

    #[test]
    fn users_are_found_by_number() {
        assert_eq!(
            parse_user_name("root:x:0:0::/:/bin/sh\ndev:x:1000:1000::/:/bin/sh\n", 1000),
            Some("dev".into())
        );
        assert_eq!(parse_user_name("", 0), None);
    }
}
