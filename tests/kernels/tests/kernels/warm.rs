//! Kernels in interpreters that a pool has started ahead.

use crate::support::*;
use cofferdam_backend::Sandbox;
use cofferdam_kernels::{Kernel, KernelLanguage, KernelOptions, Preparation};
use cofferdam_worker::runtime::{PYTHON_KERNEL, Runtime};
use cofferdam_worker::{Pool, PoolSettings};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// What the pool's interpreters have started with, and two more.
fn warm_options() -> KernelOptions {
    let mut options = options();
    options.env.retain(|(name, _)| name != "PATH");
    let path = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";
    options.env.push(("PATH".to_owned(), path.to_owned()));
    options
}

fn named(runtime: &str) -> &'static Runtime {
    cofferdam_worker::runtime::by_name("language", runtime).expect("a runtime")
}

/// Has one interpreter of a runtime wait.
async fn waiting(pool: &Pool, runtime: &'static Runtime) {
    pool.keep_ready(&sandbox_spec(512 << 20), Some(runtime), 1);
    let until = Instant::now() + PROMPTLY;
    while pool.counts().waiting == 0 {
        assert!(Instant::now() < until, "nothing waits");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

/// Makes a kernel of the interpreter that waits, and says how long that took.
async fn warm_kernel(
    pool: &Pool,
    language: KernelLanguage,
    runtime: &'static Runtime,
) -> (Kernel, Arc<dyn Sandbox>, Duration) {
    waiting(pool, runtime).await;
    let begun = Instant::now();
    let options = warm_options();
    let taken =
        pool.take_with_interpreter(sandbox_spec(512 << 20), runtime, &options.env, None).await.expect("one");
    let interpreter = taken.interpreter.expect("an interpreter waits");
    let sandbox: Arc<dyn Sandbox> = Arc::from(taken.sandbox);
    let preparation = Preparation::new(&sandbox, language, options.clone()).await.expect("a place");
    let code = preparation.code().expect("a program");
    let process = interpreter.give(code, &preparation.arguments(), &options.env).await.expect("given");
    let kernel = preparation.finish(process).await.expect("a kernel");
    (kernel, sandbox, begun.elapsed())
}

async fn run(kernel: &mut Kernel, code: &str) -> Ran {
    let mut told = Told::default();
    let end = tokio::time::timeout(PROMPTLY, kernel.run(cell(code), &mut told)).await.expect("it ends");
    Ran { end: end.expect("a cell is run"), told }
}

/// Does something with a pool that is looked after meanwhile.
async fn with_pool(work: impl AsyncFnOnce(&Pool)) {
    let pool = Pool::new(Arc::new(backend()), PoolSettings::default());
    tokio::select! {
        () = work(&pool) => {}
        _ = pool.tend() => {}
    }
    pool.drain().await.expect("drained");
}

#[tokio::test]
async fn a_python_that_waited_becomes_a_kernel() {
    becomes_a_kernel(named("python")).await;
}

#[tokio::test]
async fn a_python_that_waited_with_its_kernel_is_the_same() {
    becomes_a_kernel(&PYTHON_KERNEL).await;
}

async fn becomes_a_kernel(runtime: &'static Runtime) {
    with_pool(async |pool| {
        let (mut kernel, _sandbox, warm) = warm_kernel(pool, KernelLanguage::Python, runtime).await;
        println!("a warm Python kernel: {warm:?}");
        run(&mut kernel, "x = 41").await.well();
        let code = "import os, sys\nx + 1, os.environ['CYNODE_JOB_ID'], __name__, sys.argv, sorted(k for k in globals() if k[0] != '_')";
        let expected = "(42, 'ses-1', '__main__', [''], ['os', 'sys', 'x'])";
        assert_eq!(run(&mut kernel, code).await.well().plain(), expected);
        let ran = run(&mut kernel, "def f(): 1/0\nf()").await;
        let files = ran.error().traceback.iter().filter(|line| line.contains("File ")).count();
        assert_eq!(files, 2, "{ran:?}");
        assert_eq!(run(&mut kernel, "input()").await.error().name, "EOFError");
    })
    .await;
}

#[tokio::test]
async fn a_node_that_waited_becomes_a_kernel() {
    with_pool(async |pool| {
        let (mut kernel, _sandbox, _) = warm_kernel(pool, KernelLanguage::JavaScript, named("node")).await;
        let code = "const a = await import('node:path'); a.sep + process.env.CYNODE_JOB_ID";
        assert_eq!(run(&mut kernel, code).await.well().plain(), "'/ses-1'");
        let ran = run(&mut kernel, "null.x").await;
        assert_eq!(ran.error().traceback.len(), 2, "{ran:?}");
    })
    .await;
}

#[tokio::test]
async fn what_counts_at_the_start_of_an_interpreter_needs_a_new_one() {
    with_pool(async |pool| {
        let runtime = named("python");
        waiting(pool, runtime).await;
        let mut env = warm_options().env;
        env.push(("PYTHONHASHSEED".to_owned(), "1".to_owned()));
        let taken =
            pool.take_with_interpreter(sandbox_spec(512 << 20), runtime, &env, None).await.expect("one");
        assert!(taken.interpreter.is_none());
    })
    .await;
}

/// What a waiting interpreter has told of its kernel, for one that is started without having waited.
async fn told_kernel(pool: &Pool) -> (Arc<dyn Sandbox>, Vec<u8>) {
    waiting(pool, &PYTHON_KERNEL).await;
    let env = warm_options().env;
    let taken =
        pool.take_with_interpreter(sandbox_spec(512 << 20), &PYTHON_KERNEL, &env, None).await.expect("one");
    (Arc::from(taken.sandbox), taken.kernel.expect("it was told compiled").to_vec())
}

/// A name in the kernel, as code of its first cell finds it.
async fn figures_name(sandbox: &Arc<dyn Sandbox>, compiled: Vec<u8>) -> String {
    let options = KernelOptions { compiled: Some(compiled.into()), ..warm_options() };
    let mut kernel = Kernel::start(sandbox, KernelLanguage::Python, options).await.expect("a kernel");
    let code = "import sys\nsys.meta_path[0].find_spec.__globals__['BACKEND']";
    run(&mut kernel, code).await.well().plain().to_owned()
}

#[tokio::test]
async fn one_that_did_not_wait_reads_what_another_has_compiled() {
    with_pool(async |pool| {
        let (sandbox, told) = told_kernel(pool).await;
        assert_eq!(figures_name(&sandbox, told.clone()).await, "'_cofferdam_figures'");
        // Another name in it shows where it came from.
        let (own, other) = (b"_cofferdam_figures", b"_cofferdam_FIGURES");
        let at = told.windows(own.len()).position(|bytes| bytes == own).expect("the name");
        let mut marked = told;
        marked[at..at + own.len()].copy_from_slice(other);
        assert_eq!(figures_name(&sandbox, marked.clone()).await, "'_cofferdam_FIGURES'");
        // What an interpreter of another version has compiled is not for this one: its number comes first.
        marked[0] ^= 1;
        assert_eq!(figures_name(&sandbox, marked).await, "'_cofferdam_figures'");
        assert_eq!(figures_name(&sandbox, Vec::new()).await, "'_cofferdam_figures'");
    })
    .await;
}
