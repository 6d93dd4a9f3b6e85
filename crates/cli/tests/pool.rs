//! The warm pool on real sandboxes: what is handed out is enclosed and limited like one made for the request.

use cofferdam_backend::{Backend, ExitStatus, ProcessSpec, Sandbox, SandboxSpec, Stdio};
use cofferdam_core::{GuestPath, Limits};
use cofferdam_linux::launcher::default_runtime_folder;
use cofferdam_native::{LauncherHandle, NativeBackend};
use cofferdam_worker::{JobSpec, Pool, PoolSettings, Work, draw_job_id, draw_sandbox_id, sandbox_spec};
use std::process::Command;
use std::sync::Arc;
use std::time::Duration;
use tokio::io::AsyncReadExt;

fn pool(settings: PoolSettings) -> Pool {
    let mut program = Command::new(env!("CARGO_BIN_EXE_cofferdam"));
    program.arg("launcher");
    let launcher = LauncherHandle::spawn(program).expect("a launcher");
    let backend: Arc<dyn Backend> =
        Arc::new(NativeBackend::new(launcher, default_runtime_folder()).expect("a backend"));
    Pool::new(backend, settings)
}

fn spec(limits: Limits) -> SandboxSpec {
    let work = Work::Command { argv: vec!["/bin/sh".to_owned()] };
    let mut job = JobSpec::new(draw_job_id().expect("an id"), work);
    job.limits = limits;
    sandbox_spec(draw_sandbox_id().expect("an id"), &job)
}

/// Tends the pool until `count` sandboxes wait.
async fn filled(pool: &Pool, count: usize) {
    let fill = async {
        while pool.counts().waiting < count {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    };
    tokio::select! {
        () = fill => {}
        never = pool.tend() => match never {},
        () = tokio::time::sleep(Duration::from_secs(30)) => panic!("not filled: {:?}", pool.counts()),
    }
}

async fn sh(sandbox: &dyn Sandbox, script: &str) -> (ExitStatus, String) {
    let process = ProcessSpec {
        argv: ["/bin/sh", "-c", script].map(str::to_owned).to_vec(),
        env: vec![("PATH".to_owned(), "/usr/bin:/bin".to_owned())],
        cwd: GuestPath::parse("cwd", "/workspace").expect("a path"),
        make_cwd: false,
        stdio: Stdio::Pipes { stdin: false },
    };
    let process = sandbox.start(process).await.expect("a process");
    let mut text = String::new();
    process.take_stdout().expect("stdout").read_to_string(&mut text).await.expect("output");
    (process.wait().await.expect("its end"), text)
}

#[tokio::test]
async fn the_requests_limits_hold_in_a_warm_sandbox() {
    let pool = pool(PoolSettings::default());
    pool.keep_ready(&spec(Limits::default()), None, 2);
    filled(&pool, 2).await;
    let few = Limits { pids: 3, ..Limits::default() };
    let sandbox = pool.take(spec(few)).await.expect("a sandbox");
    let (status, _) = sh(&*sandbox, "for i in 1 2 3 4 5 6; do sleep 1 & done; wait").await;
    assert_ne!(status, ExitStatus::Exited(0));
    assert!(sandbox.stats().await.expect("stats").pids_limit_hits.expect("counted") > 0);
    assert_eq!(pool.counts().warm, 1);
    sandbox.destroy().await.expect("its end");
    pool.drain().await.expect("the others' end");
}

#[tokio::test]
async fn a_burst_of_ten_times_the_pool_has_no_error_and_no_sandbox_twice() {
    let pool = pool(PoolSettings { per_kind: 3, ..PoolSettings::default() });
    pool.keep_ready(&spec(Limits::default()), None, 3);
    filled(&pool, 3).await;
    let mut taken = Vec::new();
    for _ in 0..30 {
        let sandbox = pool.take(spec(Limits::default())).await.expect("a sandbox");
        let (status, text) = sh(&*sandbox, "ls; echo used > mark").await;
        assert_eq!((status, text.as_str()), (ExitStatus::Exited(0), ""), "it was used before");
        taken.push(sandbox);
    }
    assert_eq!((pool.counts().warm, pool.counts().cold), (3, 27));
    for sandbox in taken {
        sandbox.destroy().await.expect("its end");
    }
}
