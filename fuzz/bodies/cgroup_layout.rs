//! The text of /proc/self/mountinfo and, behind a NUL, of /proc/self/cgroup. Mount points have names that other
//! users of the machine choose.

use cofferdam_linux::cgroup::{Layout, detect_from};

pub(crate) fn run(data: &[u8]) {
    let text = String::from_utf8_lossy(data);
    let (mountinfo, own) = text.split_once('\0').unwrap_or((&text, ""));
    let as_root = detect_from(mountinfo, own, true);
    match &as_root {
        Layout::V1 { mounts } => {
            for needed in ["memory", "pids", "cpu"] {
                assert_eq!(mounts.iter().filter(|(name, _)| name == needed).count(), 1, "{needed}");
            }
        }
        Layout::V2 { base } => assert!(base.ends_with("cofferdam"), "{}", base.display()),
        Layout::None { reason } => assert!(!reason.is_empty()),
    }
    let as_user = detect_from(mountinfo, own, false);
    assert!(!matches!(as_user, Layout::V1 { .. }), "only root can use version 1");
    if matches!(as_root, Layout::None { .. }) {
        assert_eq!(as_user, as_root, "a user never has more than root");
    }
}
