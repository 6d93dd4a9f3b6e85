//! Who made a container, in words that no other process has: what is left of those that are gone is found by them.

use std::fs;

/// This process: the boot, its number, and when it began.
pub fn own() -> String {
    describe(std::process::id()).unwrap_or_else(|| "unknown".to_owned())
}

fn boot() -> Option<String> {
    Some(fs::read_to_string("/proc/sys/kernel/random/boot_id").ok()?.trim().to_owned())
}

fn describe(pid: u32) -> Option<String> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    // The name may contain anything, so fields are counted from behind it.
    let began = stat.rsplit_once(')')?.1.split_whitespace().nth(19)?.to_owned();
    Some(format!("{}:{pid}:{began}", boot()?))
}

/// Whether a maker of this machine is gone. One of another boot counts as gone only where `of_any_boot` says that
/// what it made lies on this machine.
pub fn is_gone(maker: &str, of_any_boot: bool) -> bool {
    let mut parts = maker.splitn(3, ':');
    let (Some(of), Some(pid)) = (parts.next(), parts.next().and_then(|pid| pid.parse().ok())) else {
        return false;
    };
    (of_any_boot || boot().is_some_and(|boot| boot == of)) && describe(pid).as_deref() != Some(maker)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_makers_that_are_certainly_gone_are() {
        assert!(!is_gone(&own(), false) && !is_gone(&own(), true), "this process is there");
        let mut child = std::process::Command::new("true").spawn().unwrap();
        let of_child = describe(child.id()).unwrap();
        child.wait().unwrap();
        assert!(is_gone(&of_child, false), "{of_child}");
        for odd in ["", "unknown", "another-boot:1:2", ":::"] {
            assert!(!is_gone(odd, false), "{odd:?}");
        }
        assert!(is_gone("another-boot:1:2", true));
    }
}
