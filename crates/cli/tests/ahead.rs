//! Interpreters that started ahead, on real sandboxes: a program cannot tell that its interpreter waited for it.

#[path = "ahead/node.rs"]
mod node;
#[path = "ahead/python.rs"]
mod python;

use cofferdam_backend::{Backend, SandboxSpec};
use cofferdam_core::{Artifact, JobResult, Limits, Outcome};
use cofferdam_linux::launcher::default_runtime_folder;
use cofferdam_native::{LauncherHandle, NativeBackend};
use cofferdam_oci::{OciBackend, OciOptions};
use cofferdam_worker::runtime::{Runtime, by_name};
use cofferdam_worker::{
    Discard, FileIn, JobSpec, Pool, PoolSettings, Stdin, Work, cancellation, draw_job_id, draw_sandbox_id,
    run, sandbox_spec,
};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;
use std::time::Duration;

/// A program, and what it is given.
#[derive(Debug, Clone, Copy)]
struct Program {
    name: &'static str,
    code: &'static str,
    args: &'static [&'static str],
    env: &'static [(&'static str, &'static str)],
    stdin: Option<&'static str>,
    file: Option<(&'static str, &'static str)>,
    timeout_ms: Option<u64>,
}

const fn program(name: &'static str, code: &'static str) -> Program {
    Program { name, code, args: &[], env: &[], stdin: None, file: None, timeout_ms: None }
}

impl Program {
    fn job(&self, runtime: &'static Runtime) -> JobSpec {
        let work = Work::Code { runtime, code: self.code.to_owned() };
        let mut job = JobSpec::new(cofferdam_core::JobId::from_random([7; 10]), work);
        job.args = self.args.iter().map(|&arg| arg.to_owned()).collect();
        job.env = self.env.iter().map(|&(name, value)| (name.to_owned(), value.to_owned())).collect();
        if let Some(text) = self.stdin {
            job.stdin = Stdin::Bytes(text.as_bytes().to_vec());
        }
        if let Some((path, content)) = self.file {
            let path = cofferdam_core::GuestPath::parse("file", path).expect("a path");
            job.files.push(FileIn { path, mode: 0o644, content: Box::new(content.as_bytes()) });
        }
        if let Some(ms) = self.timeout_ms {
            job.limits.timeout = Duration::from_millis(ms);
        }
        job
    }
}

/// Everything that a caller gets and that does not measure time or memory.
#[derive(Debug, PartialEq)]
struct Seen {
    outcome: Outcome,
    stdout: String,
    stderr: String,
    artifacts: Vec<Artifact>,
    warnings: Vec<String>,
    isolation: Vec<(String, String)>,
}

impl From<JobResult> for Seen {
    fn from(result: JobResult) -> Self {
        let rows = result.isolation.controls.iter();
        Self {
            outcome: result.outcome,
            stdout: result.stdout.text(),
            stderr: result.stderr.text(),
            artifacts: result.artifacts,
            warnings: result.warnings,
            isolation: rows.map(|row| (format!("{:?}", row.control), format!("{:?}", row.state))).collect(),
        }
    }
}

fn backend() -> Arc<dyn Backend> {
    let mut program = Command::new(env!("CARGO_BIN_EXE_cofferdam"));
    program.arg("launcher");
    let launcher = LauncherHandle::spawn(program).expect("a launcher");
    Arc::new(NativeBackend::new(launcher, default_runtime_folder()).expect("a backend"))
}

fn language(name: &str) -> &'static Runtime {
    by_name("lang", name).expect("a language")
}

fn sandbox() -> SandboxSpec {
    let job = JobSpec::new(draw_job_id().expect("an id"), Work::Command { argv: vec!["x".to_owned()] });
    sandbox_spec(draw_sandbox_id().expect("an id"), &job)
}

/// A root of this machine's own programs, for containers.
fn root() -> PathBuf {
    let root = Path::new(env!("CARGO_TARGET_TMPDIR")).join("ahead-root");
    let _ = std::fs::remove_dir_all(&root);
    let mut script = Command::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../../scripts/container-root.sh"));
    script.arg(&root).arg(env!("CARGO_BIN_EXE_cofferdam"));
    assert!(script.status().expect("container-root.sh").success());
    root
}

fn containers() -> Arc<dyn Backend> {
    let options = OciOptions {
        runtime: "runc".to_owned(),
        rootfs: Some(root()),
        helper: env!("CARGO_BIN_EXE_cofferdam").into(),
        runtime_folder: PathBuf::from("/run/cofferdam-ahead-tests"),
    };
    Arc::new(OciBackend::new(options).expect("a backend"))
}

/// Tends the pool while something is done with it.
async fn tended<T>(pool: &Pool, act: impl Future<Output = T>) -> T {
    tokio::select! {
        done = act => done,
        never = pool.tend() => match never {},
        () = tokio::time::sleep(Duration::from_secs(300)) => panic!("not done: {:?}", pool.counts()),
    }
}

async fn waits(pool: &Pool, count: usize) {
    while pool.counts().waiting < count {
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
}

async fn run_warm(pool: &Pool, job: JobSpec) -> JobResult {
    let before = pool.counts();
    let (_keep, cancel) = cancellation();
    let result = Box::pin(pool.run(job, &mut Discard, cancel)).await.expect("a result");
    assert_eq!((pool.counts().warm, pool.counts().cold), (before.warm + 1, before.cold), "it was not warm");
    result
}

/// Runs each program cold and warm, and compares what a caller sees; `undo` takes from a warm error what it is
/// known to have more.
async fn compare(
    backend: Arc<dyn Backend>,
    language_name: &str,
    programs: &[Program],
    undo: fn(&str) -> String,
) {
    let pool = Pool::new(Arc::clone(&backend), PoolSettings::default());
    let runtime = language(language_name);
    pool.keep_ready(&sandbox(), Some(runtime), 2);
    let differences = tended(&pool, async {
        let mut differences = Vec::new();
        for program in programs {
            let (_keep, cancel) = cancellation();
            let cold = run(&*backend, program.job(runtime), &mut Discard, cancel).await.expect("a result");
            waits(&pool, 1).await;
            let warm = run_warm(&pool, program.job(runtime)).await;
            let (cold, mut warm) = (Seen::from(cold), Seen::from(warm));
            warm.stderr = undo(&warm.stderr);
            if cold != warm {
                differences.push(format!("{}:\n  cold {cold:?}\n  warm {warm:?}", program.name));
            }
        }
        differences
    })
    .await;
    pool.drain().await.expect("the rest's end");
    assert!(differences.is_empty(), "{}", differences.join("\n"));
}

#[tokio::test]
async fn thirty_python_programs_cannot_tell_warm_from_cold() {
    assert!(python::PROGRAMS.len() >= 30);
    Box::pin(compare(backend(), "python", &python::PROGRAMS, str::to_owned)).await;
}

#[tokio::test]
async fn nor_can_they_in_a_container() {
    Box::pin(compare(containers(), "python", &python::PROGRAMS, str::to_owned)).await;
}

#[tokio::test]
async fn node_programs_cannot_tell_warm_from_cold() {
    Box::pin(compare(backend(), "node", &node::PROGRAMS, node::without_the_wait)).await;
}

/// Interpreters are started one by one, so that none shares a secret with another.
#[tokio::test]
async fn every_interpreter_has_its_own_seeds() {
    let pool = Pool::new(backend(), PoolSettings::default());
    let python = language("python");
    pool.keep_ready(&sandbox(), Some(python), 2);
    let code = "import random, sys; print(hash('seed'), random.random(), id(object()))";
    let texts = tended(&pool, async {
        let mut texts = Vec::new();
        for _ in 0..4 {
            waits(&pool, 1).await;
            texts.push(run_warm(&pool, program("seeds", code).job(python)).await.stdout.text());
        }
        texts
    })
    .await;
    for column in 0..3 {
        let mut seen: Vec<_> = texts.iter().map(|text| text.split_whitespace().nth(column)).collect();
        seen.sort_unstable();
        seen.dedup();
        assert_eq!(seen.len(), texts.len(), "column {column} of {texts:?}");
    }
    pool.drain().await.expect("the rest's end");
}

/// The code that an interpreter waits with is compiled by the first of its kind, for all that come.
#[tokio::test]
async fn only_the_first_compiles_what_it_waits_with() {
    let pool = Pool::new(backend(), PoolSettings::default());
    let python = language("python");
    pool.keep_ready(&sandbox(), Some(python), 1);
    let code = "print('loads(open' in open('/proc/self/cmdline').read())";
    let texts = tended(&pool, async {
        let mut texts = Vec::new();
        for _ in 0..3 {
            waits(&pool, 1).await;
            texts.push(run_warm(&pool, program("compiled", code).job(python)).await.stdout.text());
        }
        texts
    })
    .await;
    assert_eq!(texts, ["False\n", "True\n", "True\n"]);
    pool.drain().await.expect("the rest's end");
}

#[tokio::test]
async fn the_requests_limits_hold_before_its_code_runs() {
    let pool = Pool::new(backend(), PoolSettings::default());
    let python = language("python");
    let code = "x = bytearray(200 << 20)\nprint('too late')";
    let mut job = program("memory", code).job(python);
    let disk = Limits::memory_disk(64 << 20);
    pool.keep_ready(
        &SandboxSpec { limits: Limits { disk, ..Limits::default() }, ..sandbox() },
        Some(python),
        1,
    );
    job.limits = Limits { memory_bytes: 64 << 20, disk, ..Limits::default() };
    let result = tended(&pool, async {
        waits(&pool, 1).await;
        run_warm(&pool, job).await
    })
    .await;
    assert_eq!((result.outcome, result.stdout.text()), (Outcome::OomKilled, String::new()));
    pool.drain().await.expect("the rest's end");
}

/// What a job asks for may only count when an interpreter starts; then one is started.
#[tokio::test]
async fn what_cannot_be_given_afterwards_is_a_cold_start() {
    let pool = Pool::new(backend(), PoolSettings::default());
    let python = language("python");
    pool.keep_ready(&sandbox(), Some(python), 1);
    tended(&pool, waits(&pool, 1)).await;
    let seeded = Program { env: &[("PYTHONHASHSEED", "0")], ..program("seeded", "print(hash('a'))") };
    let mut texts = Vec::new();
    for _ in 0..2 {
        let (_keep, cancel) = cancellation();
        let result = pool.run(seeded.job(python), &mut Discard, cancel).await.expect("a result");
        texts.push(result.stdout.text());
    }
    assert_eq!((pool.counts().warm, pool.counts().cold), (0, 2));
    assert_eq!(texts[0], texts[1]);
    pool.drain().await.expect("the rest's end");
}
