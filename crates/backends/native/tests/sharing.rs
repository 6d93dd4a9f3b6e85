//! Sandboxes that begin with another one's files, on a filesystem that can share them. It takes root, and mkfs.xfs.

use cofferdam_backend::conformance::run_case;
use cofferdam_backend::conformance::support::{
    limits, path, process, promptly, read, sandbox_spec, sh_ok, start_ready, with_stdin, write,
};
use cofferdam_backend::{Backend, BackendError, Result, Sandbox, SandboxSpec, SharedFiles};
use cofferdam_core::{Disk, Limits};
use cofferdam_linux::launcher::default_runtime_folder;
use cofferdam_native::{LauncherHandle, NativeBackend};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;

const MIB: u64 = 1 << 20;

async fn make_backend() -> Arc<dyn Backend> {
    let program = env!("CARGO_BIN_EXE_cofferdam-launcher");
    let launcher = LauncherHandle::spawn(Command::new(program)).expect("a launcher");
    Arc::new(NativeBackend::new(launcher, default_runtime_folder()).expect("a backend"))
}

/// A filesystem of the test's own, for as long as it lives.
struct Xfs(PathBuf);

impl Xfs {
    fn mount(name: &str) -> Self {
        let folder = PathBuf::from(format!("/var/tmp/cofferdam-xfs-{name}-{}", std::process::id()));
        std::fs::create_dir(&folder).expect("a folder");
        let image = folder.with_extension("image");
        std::fs::File::create(&image).and_then(|file| file.set_len(1 << 30)).expect("an image");
        let made = Self(folder);
        run("mkfs.xfs", &["-q"], &[&image]);
        run("mount", &["-o", "loop"], &[&image, &made.0]);
        // The mount has it.
        std::fs::remove_file(image).expect("the image");
        made
    }

    /// Bytes that everything in it takes up.
    fn used(&self) -> u64 {
        run("sync", &["-f"], &[&self.0]);
        let stat = rustix::fs::statvfs(&self.0).expect("its numbers");
        (stat.f_blocks - stat.f_bfree) * stat.f_frsize
    }
}

impl Drop for Xfs {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg("--lazy").arg(&self.0).status();
        let _ = std::fs::remove_dir(&self.0);
        let _ = std::fs::remove_file(self.0.with_extension("image"));
    }
}

fn run(program: &str, arguments: &[&str], paths: &[&Path]) {
    let status = Command::new(program).args(arguments).args(paths).status();
    assert!(status.unwrap_or_else(|error| panic!("{program}: {error}")).success(), "{program} {paths:?}");
}

fn spec(root: &Path, files: Option<Arc<SharedFiles>>) -> SandboxSpec {
    let limits = Limits { disk: Disk::OnDisk { bytes: 256 * MIB }, ..limits(256 * MIB) };
    SandboxSpec { limits, workspace_root: root.to_owned(), files, ..sandbox_spec() }
}

async fn parent(backend: &dyn Backend, root: &Path) -> Box<dyn Sandbox> {
    backend.create(spec(root, None)).await.expect("a sandbox")
}

/// As a fork does: it stands still meanwhile.
async fn share(sandbox: &dyn Sandbox) -> Result<Arc<SharedFiles>> {
    promptly("a pause", sandbox.pause()).await.expect("a pause");
    let shared = promptly("sharing", sandbox.share_files()).await;
    promptly("its end", sandbox.resume()).await.expect("the end of a pause");
    shared.map(Arc::new)
}

async fn child(backend: &dyn Backend, root: &Path, of: &dyn Sandbox) -> Box<dyn Sandbox> {
    let files = share(of).await.expect("files that are shared");
    promptly("a child", backend.create(spec(root, Some(files)))).await.expect("a child")
}

const LOOK: &str = "find . -exec stat -c '%n %a %u %g %s %y %N' {} + | sort; cat a b/c; ls -A /tmp";

#[test]
fn a_child_has_the_same_files_and_both_go_their_ways() {
    run_case("the_same_files", &[], make_backend, async |backend: &dyn Backend| {
        let xfs = Xfs::mount("same");
        let root = xfs.0.as_path();
        let parent = parent(backend, root).await;
        let make =
            "mkdir -p b/d .hidden && echo one > a && echo two > b/c && chmod 400 b/c && chmod 1755 b/d &&
            ln -s /etc/passwd out && ln -s missing none && touch -d @1000000000 a && rmdir .artifacts &&
            head -c 60M /dev/urandom > large && chmod 700 /workspace &&
            mkdir -p /tmp/x/y && echo t > /tmp/x/y/z && mkfifo /tmp/fifo && chmod 755 . && sync -f .";
        sh_ok(&*parent, make).await;
        let before = xfs.used();
        let child_of = child(backend, root, &*parent).await;
        let grandchild = child(backend, root, &*child_of).await;
        let more = xfs.used().saturating_sub(before);
        assert!(more < 8 * MIB, "two children of 60 MiB took {more} bytes");
        let expected = sh_ok(&*parent, &LOOK.replace("; ls -A /tmp", "")).await;
        for child in [&child_of, &grandchild] {
            assert_eq!(sh_ok(&**child, LOOK).await, expected);
            sh_ok(
                &**child,
                "cmp large large && echo more >> a && rm large && echo new > b/d/new && chmod 600 b/c",
            )
            .await;
        }
        assert_eq!(read(&*parent, "/workspace/a").await.expect("a file"), b"one\n");
        sh_ok(&*parent, "echo other > a && sync . && test -e large && test ! -e b/d/new").await;
        assert_eq!(sh_ok(&*grandchild, "cat a").await, "one\nmore\n");
        // What all of them have written over, nobody holds any more.
        let write = "dd if=/dev/zero of=over bs=1M count=60 conv=notrunc status=none && sync -f .";
        sh_ok(&*parent, write).await;
        let second = child(backend, root, &*parent).await;
        let before = xfs.used();
        for sandbox in [&parent, &second] {
            sh_ok(&**sandbox, write).await;
        }
        let more = xfs.used().saturating_sub(before);
        assert!(more < 80 * MIB, "60 MiB, shared and then written over by both, took {more} bytes more");
        let free = |stats: cofferdam_backend::Stats| (stats.disk_free_bytes, stats.disk_free_inodes);
        let (stats, others) = (child_of.stats().await.unwrap(), grandchild.stats().await.unwrap());
        assert_eq!(free(stats), free(others));
        // The limit is each one's own.
        let filled = sh_ok(&*grandchild, "head -c 400M /dev/zero > full 2>/dev/null; stat -c %s full").await;
        assert!(filled.trim().parse::<u64>().unwrap() < 256 * MIB, "{filled}");
        sh_ok(&*child_of, "head -c 10M /dev/zero > room").await;
        for sandbox in [parent, child_of, grandchild, second] {
            sandbox.destroy().await.expect("its end");
        }
    });
}

#[test]
fn what_a_copy_would_change_is_not_shared() {
    run_case("not_shared", &[], make_backend, async |backend: &dyn Backend| {
        let xfs = Xfs::mount("not");
        let sandbox = parent(backend, &xfs.0).await;
        let awkward = [
            ("a name of the same file", "touch f && ln f g", "rm f g"),
            ("a pipe", "mkdir -p d && mkfifo d/p", "rm -r d"),
            ("a set-id bit", "touch f && chmod u+s f", "rm f"),
            ("a folder's set-id bit", "mkdir d && chmod g+s d", "rmdir d"),
            ("an attribute", "touch f && python3 -c \"import os; os.setxattr('f', 'user.x', b'y')\"", "rm f"),
            ("a file that cannot be read", "touch f && chmod 0 f", "rm -f f"),
            ("a folder that cannot be read", "mkdir -p d/e && chmod 300 d", "chmod 700 d; rm -r d"),
            ("a folder that cannot be entered", "mkdir -p d/e && chmod 400 d", "chmod 700 d; rm -r d"),
            ("a name of another kind", "touch \"$(printf 'x\\377')\"", "rm x*"),
            ("a file in /dev/shm", "touch /dev/shm/f", "rm /dev/shm/f"),
            ("much in /tmp", "cd /tmp && seq 2000 | xargs touch", "cd /tmp && seq 2000 | xargs rm"),
        ];
        for (what, make, remove) in awkward {
            sh_ok(&*sandbox, make).await;
            let error = share(&*sandbox).await.expect_err(what);
            let is_no_surprise = !matches!(error, BackendError::Failed { .. } | BackendError::Gone { .. });
            assert!(is_no_surprise, "{what}: {error}");
            sh_ok(&*sandbox, remove).await;
            share(&*sandbox).await.unwrap_or_else(|error| panic!("without {what}: {error}"));
        }
        let holds = with_stdin(process(["sh", "-c", "exec 3>gone; rm gone; echo ready; read x"]));
        let (holder, _out) = start_ready(&*sandbox, holds).await;
        let error = share(&*sandbox).await.expect_err("a file without a name");
        assert!(error.to_string().contains("more files"), "{error}");
        drop(holder.take_stdin());
        holder.wait().await.expect("its end");
        share(&*sandbox).await.expect("without it");
        let error = sandbox.share_files().await.expect_err("it is not paused");
        assert!(error.to_string().contains("not paused"), "{error}");
        write(&*sandbox, "/run/secrets/token", 0o400, b"secret").await.expect("a secret");
        let error = share(&*sandbox).await.expect_err("a secret");
        assert!(error.to_string().contains("secrets"), "{error}");
        sandbox.destroy().await.expect("its end");
    });
}

/// Bytes that never come.
struct Waiting;

impl tokio::io::AsyncRead for Waiting {
    fn poll_read(
        self: std::pin::Pin<&mut Self>,
        _: &mut std::task::Context<'_>,
        _: &mut tokio::io::ReadBuf<'_>,
    ) -> std::task::Poll<std::io::Result<()>> {
        std::task::Poll::Pending
    }
}

#[test]
fn nothing_is_shared_while_the_host_writes() {
    run_case("host_writes", &[], make_backend, async |backend: &dyn Backend| {
        let xfs = Xfs::mount("writes");
        let sandbox = parent(backend, &xfs.0).await;
        let name = path("/workspace/upload");
        let upload = sandbox.write_file(&name, 0o644, Box::new(Waiting));
        let look = async {
            while sandbox.stat(&name).await.is_err() {
                tokio::task::yield_now().await;
            }
            share(&*sandbox).await.expect_err("an upload")
        };
        let error = tokio::select! {
            _ = upload => panic!("it never ends"),
            error = look => error,
        };
        assert!(error.to_string().contains("written"), "{error}");
        share(&*sandbox).await.expect("nobody writes any more");
        sandbox.destroy().await.expect("its end");
    });
}

#[test]
fn a_filesystem_that_cannot_says_so_and_other_sizes_are_refused() {
    run_case("cannot", &[], make_backend, async |backend: &dyn Backend| {
        let xfs = Xfs::mount("cannot");
        let sandbox = parent(backend, &xfs.0).await;
        let files = share(&*sandbox).await.expect("files");
        let memory = SandboxSpec { limits: limits(256 * MIB), ..spec(&xfs.0, Some(files.clone())) };
        let mut larger = spec(&xfs.0, Some(files.clone()));
        larger.limits.disk = Disk::OnDisk { bytes: 300 * MIB };
        for refused in
            [memory, larger, SandboxSpec { writable_root: true, ..spec(&xfs.0, Some(files.clone())) }]
        {
            let error = backend.create(refused).await.expect_err("a refusal");
            assert!(matches!(error, BackendError::Unsupported { .. }), "{error}");
        }
        // Elsewhere there is nothing to share it with.
        backend.create(spec(Path::new("/var/tmp"), Some(files))).await.expect_err("another filesystem");
        sandbox.destroy().await.expect("its end");
        let in_memory = backend.create(sandbox_spec()).await.expect("a sandbox");
        let error = share(&*in_memory).await.expect_err("in memory");
        assert!(error.to_string().contains("in memory"), "{error}");
        in_memory.destroy().await.expect("its end");
    });
}
