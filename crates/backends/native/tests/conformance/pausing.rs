//! What keeping a session's files asks for besides. Pauses while processes are being started: between joining its group
//! and its first program, a process has init wait. And folders that are put back, also by a host that is not root.

use cofferdam_backend::conformance::run_case;
use cofferdam_backend::conformance::support::{path, process, promptly, sandbox, sandbox_spec, sh_ok};
use cofferdam_backend::{Backend, BackendError, ExitStatus, Sandbox, SandboxSpec};
use cofferdam_core::IsolationMode;
use std::sync::atomic::{AtomicUsize, Ordering};

const STARTERS: usize = 8;
const STARTS: usize = 25;

/// What an archive does: everything stands still while init opens files.
async fn stand_still(sandbox: &dyn Sandbox) {
    promptly("pause", sandbox.pause()).await.expect("a pause");
    promptly("files", sandbox.list_files(&path("/workspace"), 10)).await.expect("files");
    promptly("resume", sandbox.resume()).await.expect("an end of the pause");
}

#[test]
fn starts_and_pauses_do_not_hold_each_other_up() {
    run_case("starts_and_pauses", &[], crate::make_backend, async |backend: &dyn Backend| {
        let sandbox = sandbox(backend).await;
        let (sandbox, busy) = (&*sandbox, AtomicUsize::new(STARTERS));
        let starter = async || {
            for _ in 0..STARTS {
                let started = promptly("a start", sandbox.start(process(["true"]))).await.expect("a process");
                let status = promptly("its end", started.wait()).await.expect("a status");
                assert_eq!(status, ExitStatus::Exited(0));
            }
            busy.fetch_sub(1, Ordering::Relaxed);
        };
        let pauser = async {
            let mut pauses = 0;
            while busy.load(Ordering::Relaxed) > 0 {
                stand_still(sandbox).await;
                pauses += 1;
                tokio::task::yield_now().await;
            }
            assert!(pauses > 10, "only {pauses} pauses");
        };
        let starters = async {
            tokio::join!(
                starter(),
                starter(),
                starter(),
                starter(),
                starter(),
                starter(),
                starter(),
                starter()
            )
        };
        tokio::join!(pauser, starters);
    });
}

/// Before its first process, init makes one ahead of its own accord.
#[test]
fn a_sandbox_that_was_just_made_can_be_paused() {
    run_case("just_made", &[], crate::make_backend, async |backend: &dyn Backend| {
        for _ in 0..40 {
            let sandbox = backend.create(sandbox_spec()).await.expect("a sandbox");
            stand_still(&*sandbox).await;
            promptly("destroy", sandbox.destroy()).await.expect("its end");
        }
    });
}

/// Whoever waits to start something in a sandbox that is paused hears of its end.
#[test]
fn what_waits_for_the_end_of_a_pause_hears_of_the_end_of_all() {
    run_case("waits", &[], crate::make_backend, async |backend: &dyn Backend| {
        let sandbox = sandbox(backend).await;
        promptly("pause", sandbox.pause()).await.expect("a pause");
        promptly("a second pause", sandbox.pause()).await.expect("it is paused");
        let (started, ended) = tokio::join!(sandbox.start(process(["true"])), sandbox.destroy());
        assert!(matches!(started, Err(BackendError::Gone { .. })), "{started:?}");
        ended.expect("its end");
    });
}

/// In best effort, so that it can be tried without root where nothing could be limited.
#[test]
fn folders_are_put_back_with_their_modes() {
    run_case("folders", &[], crate::make_backend, async |backend: &dyn Backend| {
        let spec = SandboxSpec { isolation: IsolationMode::BestEffort, ..sandbox_spec() };
        let sandbox = backend.create(spec).await.expect("a sandbox");
        for (name, mode) in
            [("plain", 0o755), ("closed", 0o555), ("dark", 0), ("open", 0o1777), ("set", 0o6755)]
        {
            let folder = path(&format!("/workspace/{name}"));
            sandbox.make_folder(&folder).await.expect("a folder");
            let content = Box::new(std::io::Cursor::new(b"x".to_vec()));
            let file = folder.join("file").expect("a path");
            sandbox.restore_file(&file, 0o640, 1_580_702_706_000, content).await.expect("a file");
            sandbox.restore_folder(&folder, mode, 1_580_702_706_000).await.expect("its mode");
        }
        let seen =
            sh_ok(&*sandbox, "stat -c '%n %a' plain closed dark open set; stat -c %a plain/file").await;
        assert_eq!(seen, "plain 755\nclosed 555\ndark 0\nopen 1777\nset 755\n640\n");
        sandbox.destroy().await.expect("its end");
    });
}
