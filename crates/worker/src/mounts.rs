//! Folders of this machine for a job: opened, so that what is mounted later is what was looked at.
//!
//! Links on the way are followed only while they stay in the folder that the operator named, and the kernel sees to
//! that: nothing is looked up twice, and no path is compared with another.

use crate::task_env::workspace;
use cofferdam_api::SandboxRequest;
use cofferdam_backend::{Mount, MountSource};
use cofferdam_core::{GuestPath, HostPath, InvalidValue, MountRoot};
use rustix::fs::{Mode, OFlags, ResolveFlags, open, openat2};
use rustix::io::Errno;
use std::os::fd::OwnedFd;
use std::sync::Arc;
use thiserror::Error;

/// Why a mount is not made.
#[derive(Debug, PartialEq, Eq, Error)]
pub enum MountRefused {
    /// It is none of those that the operator allows, or leads out of them.
    #[error(transparent)]
    Outside(InvalidValue),
    /// It cannot be mounted, whoever allows it.
    #[error(transparent)]
    Unusable(#[from] InvalidValue),
}

/// The kernel gives up on a path whose folders are renamed while it goes through them.
const ATTEMPTS: usize = 16;

/// Opens what a job is to see. Without mounts that is its own workspace, where it starts elsewhere than in it.
pub fn open_mounts(sandbox: &SandboxRequest, roots: &[MountRoot]) -> Result<Vec<Mount>, MountRefused> {
    if let (true, Some(text)) = (sandbox.mounts.is_empty(), &sandbox.workdir) {
        let target = GuestPath::parse("sandbox.workdir", text)?;
        let own = |path: &str| target.as_str() == path || target.as_str().starts_with(&format!("{path}/"));
        if own(workspace().as_str()) || own("/tmp") {
            return Ok(Vec::new());
        }
        check_target("sandbox.workdir", &target)?;
        return Ok(vec![Mount { source: MountSource::Workspace, target, read_only: false }]);
    }
    let mut made = Vec::new();
    for (i, mount) in sandbox.mounts.iter().enumerate() {
        let field = format!("sandbox.mounts[{i}].source");
        let named = format!("sandbox.mounts[{i}].target");
        let target = GuestPath::parse(&named, &mount.target)?;
        check_target(&named, &target)?;
        let source = HostPath::parse(&field, &mount.source)?;
        let Some((root, below)) =
            MountRoot::of(roots, &source).and_then(|root| Some((root, source.below(&root.path)?)))
        else {
            let fix = "it lies in no folder that jobs may mount (backends.mount_roots)";
            return Err(MountRefused::Outside(InvalidValue::new(&field, source.as_str(), fix)));
        };
        let read_only = root.read_only || mount.read_only.unwrap_or(true);
        let opened =
            open_beneath(root.path.as_str(), below).map_err(|error| refused(&field, &source, error))?;
        made.push(Mount { source: MountSource::Folder(Arc::new(opened)), target, read_only });
    }
    Ok(made)
}

/// Where every sandbox has its secrets.
const SECRETS: &str = "/run/secrets";

/// Secrets are in memory: nothing of the host, and nothing that is kept, is mounted in their place, above or below it.
fn check_target(field: &str, target: &GuestPath) -> Result<(), InvalidValue> {
    let is_in = |inner: &str, outer: &str| {
        inner.strip_prefix(outer).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
    };
    match is_in(target.as_str(), SECRETS) || is_in(SECRETS, target.as_str()) {
        true => {
            Err(InvalidValue::new(field, target.as_str(), "/run/secrets is for secrets: name another place"))
        }
        false => Ok(()),
    }
}

fn open_beneath(root: &str, below: &str) -> Result<OwnedFd, Errno> {
    let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let root = open(root, flags, Mode::empty())?;
    let within = ResolveFlags::BENEATH | ResolveFlags::NO_MAGICLINKS;
    let mut last = Errno::AGAIN;
    for _ in 0..ATTEMPTS {
        match openat2(&root, below, flags, Mode::empty(), within) {
            Err(Errno::AGAIN) => last = Errno::AGAIN,
            other => return other,
        }
    }
    Err(last)
}

fn refused(field: &str, source: &HostPath, error: Errno) -> MountRefused {
    let invalid = |fix: String| InvalidValue::new(field, source.as_str(), fix);
    match error {
        // The kernel's words for a way out of the folder, and for a link that is none.
        Errno::XDEV | Errno::LOOP => MountRefused::Outside(invalid(
            "a link on the way leads out of the folder that jobs may mount (backends.mount_roots)".to_owned(),
        )),
        Errno::NOENT => MountRefused::Unusable(invalid("there is no such folder on the server".to_owned())),
        Errno::NOTDIR => MountRefused::Unusable(invalid("it is not a folder".to_owned())),
        other => MountRefused::Unusable(invalid(format!("it cannot be opened: {other}"))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use cofferdam_api::MountRequest;
    use std::fs;
    use std::os::unix::fs::{MetadataExt, symlink};
    use std::path::{Path, PathBuf};

    /// A folder of the test's own.
    struct Ground(PathBuf);

    impl Ground {
        fn new(name: &str) -> Self {
            let path = std::env::temp_dir().join(format!("cofferdam-mounts-{name}-{}", std::process::id()));
            let _ = fs::remove_dir_all(&path);
            fs::create_dir_all(path.join("root/in/deep")).unwrap();
            fs::create_dir_all(path.join("outside")).unwrap();
            Self(path)
        }

        fn open(&self, below: &str, read_only: bool) -> Result<Vec<Mount>, MountRefused> {
            let at = |name: &str| self.0.join(name).to_string_lossy().into_owned();
            let path = HostPath::parse("root", &at("root")).unwrap();
            let mount = MountRequest { source: at(below), target: "/in".into(), read_only: Some(false) };
            let sandbox = SandboxRequest { mounts: vec![mount], ..SandboxRequest::default() };
            open_mounts(&sandbox, &[MountRoot { path, read_only }])
        }
    }

    impl Drop for Ground {
        fn drop(&mut self) {
            let _ = fs::remove_dir_all(&self.0);
        }
    }

    fn inode(mount: &Mount) -> u64 {
        let MountSource::Folder(opened) = &mount.source else { panic!("{mount:?}") };
        rustix::fs::fstat(opened).unwrap().st_ino
    }

    fn inode_at(path: &Path) -> u64 {
        fs::metadata(path).unwrap().ino()
    }

    #[test]
    fn what_is_opened_is_what_was_named_and_stays_that() {
        let ground = Ground::new("opened");
        symlink("in/deep", ground.0.join("root/link")).unwrap();
        let deep = inode_at(&ground.0.join("root/in/deep"));
        for below in ["root/in/deep", "root/link"] {
            let made = ground.open(below, true).unwrap();
            assert_eq!((inode(&made[0]), made[0].read_only), (deep, true), "{below}");
        }
        assert!(!ground.open("root/in", false).unwrap()[0].read_only);
        assert_eq!(inode(&ground.open("root", true).unwrap()[0]), inode_at(&ground.0.join("root")));
        // Another folder in its place changes nothing of what was opened.
        let made = ground.open("root/in/deep", true).unwrap();
        fs::rename(ground.0.join("root/in/deep"), ground.0.join("root/in/away")).unwrap();
        symlink(ground.0.join("outside"), ground.0.join("root/in/deep")).unwrap();
        assert_eq!(inode(&made[0]), deep);
        assert!(matches!(ground.open("root/in/deep", true), Err(MountRefused::Outside(_))));
    }

    #[test]
    fn links_that_lead_out_are_refused_by_name() {
        let ground = Ground::new("links");
        let root = ground.0.join("root");
        symlink("/etc", root.join("absolute")).unwrap();
        symlink("../outside", root.join("up")).unwrap();
        symlink("..", root.join("in/parent")).unwrap();
        symlink("/proc/self/root", root.join("magic")).unwrap();
        symlink("round", root.join("round")).unwrap();
        symlink(ground.0.join("outside"), root.join("in/there")).unwrap();
        let ways = [
            "root/absolute",
            "root/up",
            "root/in/parent/up",
            "root/magic/etc",
            "root/round",
            "root/in/there",
        ];
        for below in ways.into_iter().chain(["outside", "root2"]) {
            let error = ground.open(below, true).expect_err(below);
            let MountRefused::Outside(why) = &error else { panic!("{below}: {error}") };
            assert_eq!(why.field, "sandbox.mounts[0].source");
            assert!(why.value.ends_with(below), "{why}");
        }
        assert!(ground.open("root/in/parent/in", true).is_ok(), "it stays within");
    }

    #[test]
    fn what_is_no_folder_is_said_to_be_none() {
        let ground = Ground::new("none");
        fs::write(ground.0.join("root/file"), "").unwrap();
        for (below, said) in [("root/file", "not a folder"), ("root/missing", "no such folder")] {
            let error = ground.open(below, true).expect_err(below);
            assert!(
                matches!(error, MountRefused::Unusable(_)) && error.to_string().contains(said),
                "{error}"
            );
        }
    }

    #[test]
    fn nothing_is_mounted_where_secrets_are() {
        for target in ["/run/secrets", "/run/secrets/deep", "/run"] {
            let sandbox = SandboxRequest { workdir: Some(target.into()), ..SandboxRequest::default() };
            let error = open_mounts(&sandbox, &[]).expect_err(target);
            assert!(error.to_string().contains("sandbox.workdir"), "{error}");
            let mount = MountRequest { source: "/srv".into(), target: target.into(), read_only: None };
            let sandbox = SandboxRequest { mounts: vec![mount], ..SandboxRequest::default() };
            let error = open_mounts(&sandbox, &[]).expect_err(target);
            assert!(error.to_string().contains("sandbox.mounts[0].target"), "{error}");
        }
        let sandbox = SandboxRequest { workdir: Some("/run/secretsx".into()), ..SandboxRequest::default() };
        assert_eq!(open_mounts(&sandbox, &[]).unwrap().len(), 1);
    }

    #[test]
    fn without_mounts_the_workspace_is_where_the_job_starts() {
        let start = |text: &str| {
            let sandbox = SandboxRequest { workdir: Some(text.into()), ..SandboxRequest::default() };
            open_mounts(&sandbox, &[]).unwrap()
        };
        assert!(
            start("/workspace/a").is_empty() && start("/workspace").is_empty() && start("/tmp/x").is_empty()
        );
        let made = start("/app");
        assert!(matches!(made[0].source, MountSource::Workspace) && made[0].target.as_str() == "/app");
        assert!(!made[0].read_only && made.len() == 1);
        assert!(matches!(start("/workspaces")[0].source, MountSource::Workspace));
        assert!(open_mounts(&SandboxRequest::default(), &[]).unwrap().is_empty());
    }
}
