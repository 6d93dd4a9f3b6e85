//! Cells in Python.

use crate::support::*;
use cofferdam_core::Outcome;
use cofferdam_kernels::{Cell, CellOutcome, KernelLanguage, ResultKind};
use std::time::{Duration, Instant};

async fn python() -> Notebook {
    Notebook::open(KernelLanguage::Python).await
}

const KEPT: CellOutcome = CellOutcome::Interrupted { state_kept: true };

#[tokio::test]
async fn cells_build_on_each_other_and_count() {
    let mut notebook = python().await;
    let first = notebook.run("x = 41\ndef f():\n    return x + 1").await.well();
    assert_eq!((first.end.execution_count, first.told.shown.len()), (1, 0));
    let second = notebook.run("print('hello')\nf()").await.well();
    assert_eq!((second.stdout().as_str(), second.plain(), second.end.execution_count), ("hello\n", "42", 2));
    assert_eq!(second.told.shown[0].kind, ResultKind::Result);
    assert_eq!(notebook.run("_ * 2").await.well().plain(), "84");
    assert!(notebook.run("x;").await.well().told.shown.is_empty());
    assert!(notebook.run("").await.well().told.shown.is_empty());
    assert_eq!(
        notebook.run("__name__, sorted(k for k in globals() if 'boot' in k or 'channel' in k)").await.plain(),
        "('__main__', [])"
    );
}

#[tokio::test]
async fn top_level_await_works_and_tasks_go_on_between_cells() {
    let mut notebook = python().await;
    let code = "import asyncio\nasync def g():\n    await asyncio.sleep(0.01)\n    return 7\nawait g()";
    assert_eq!(notebook.run(code).await.well().plain(), "7");
    let code = "done = []\nasync def later():\n    await asyncio.sleep(0.05)\n    done.append(1)\ntask = asyncio.create_task(later())\nawait asyncio.sleep(0)";
    notebook.run(code).await.well();
    let until = Instant::now() + PROMPTLY;
    while notebook.run("done").await.plain() != "[1]" {
        assert!(Instant::now() < until, "the task never went on");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    assert_eq!(notebook.run("async with asyncio.timeout(5): y = await g()\ny").await.well().plain(), "7");
}

#[tokio::test]
async fn errors_have_name_value_and_only_the_users_frames() {
    let mut notebook = python().await;
    let ran = notebook.run("def f():\n    raise ValueError('one\\ntwo')\nf()").await;
    assert_eq!(ran.end.outcome, CellOutcome::Raised);
    let error = ran.error();
    assert_eq!((error.name.as_str(), error.value.as_str()), ("ValueError", "one\ntwo"));
    let expected = [
        "Traceback (most recent call last):",
        "  File \"<cell 1>\", line 3, in <module>",
        "    f()",
        "  File \"<cell 1>\", line 2, in f",
        "    raise ValueError('one\\ntwo')",
        "ValueError: one",
        "two",
    ];
    assert_eq!(error.traceback, expected);
    let ran = notebook.run("import asyncio\nawait asyncio.sleep(0)\n1/0").await;
    assert_eq!(ran.error().name, "ZeroDivisionError");
    assert!(!ran.error().traceback.join("\n").contains("kernel"), "{ran:?}");
    let ran = notebook.run("a = (1\nb = 2").await;
    assert_eq!(ran.error().name, "SyntaxError");
    assert!(ran.error().traceback.join("\n").contains("a = (1"), "{ran:?}");
    // A function of an earlier cell shows its own lines.
    let ran = notebook.run("f()").await;
    assert_eq!(ran.error().traceback[3..5], expected[3..5]);
}

#[tokio::test]
async fn what_runs_too_long_is_interrupted_and_the_state_is_kept() {
    let mut notebook = python().await;
    notebook.run("x = 5\nimport time, ctypes, asyncio, threading, subprocess").await.well();
    for code in [
        "print('on', flush=True)\nwhile True: pass",
        "print('on', flush=True)\ntime.sleep(1000)",
        "print('on', flush=True)\nctypes.CDLL(None).sleep(1000)",
        "print('on', flush=True)\nthreading.Event().wait()",
        "print('on', flush=True)\nawait asyncio.sleep(1000)",
        "async def spin():\n    while True: pass\nprint('on', flush=True)\nawait spin()",
        "print('on', flush=True)\nsubprocess.run(['sleep', '1000'])",
    ] {
        let ran = notebook.run_and_interrupt(code, "on").await;
        assert_eq!(ran.end.outcome, KEPT, "{code}: {ran:?}");
        assert_eq!(ran.error().name, "KeyboardInterrupt", "{code}");
        assert!(!ran.error().traceback.join("\n").contains("kernel"), "{ran:?}");
        assert_eq!(notebook.run("x").await.well().plain(), "5", "{code}");
    }
}

#[tokio::test]
async fn what_does_not_heed_an_interrupt_is_killed_after_the_grace() {
    let grace = Duration::from_millis(300);
    let options = cofferdam_kernels::KernelOptions { grace, ..options() };
    let mut notebook = Notebook::with(KernelLanguage::Python, 512 << 20, options).await;
    let begun = Instant::now();
    // A call into C; with a handler of its own, so that an interrupt right before it is not heeded either.
    let code = "import signal\nsignal.signal(signal.SIGINT, lambda *_: None)\n\
                print('on', flush=True)\nsum(range(10**15))";
    let ran = notebook.run_and_interrupt(code, "on").await;
    assert_eq!(ran.end.outcome, CellOutcome::Interrupted { state_kept: false }, "{ran:?}");
    assert!(begun.elapsed() >= grace);
    assert!(!notebook.kernel.is_alive());
    let again = notebook.kernel.run(cell("1"), &mut Told::default()).await;
    assert!(matches!(again, Err(cofferdam_kernels::KernelError::Over)), "{again:?}");
}

#[tokio::test]
async fn a_time_out_interrupts_and_an_interrupt_between_cells_does_nothing() {
    let mut notebook = python().await;
    notebook.run("x = 1").await.well();
    let code = "while True: pass".to_owned();
    let ran = notebook.run_cell(Cell { code, env: vec![], timeout: Some(Duration::from_millis(200)) }).await;
    assert_eq!(ran.end.outcome, CellOutcome::TimedOut { state_kept: true }, "{ran:?}");
    assert!(!notebook.kernel.interrupter().interrupt().await);
    assert_eq!(notebook.run("x").await.well().plain(), "1");
}

#[tokio::test]
async fn an_exit_ends_the_kernel_with_its_code() {
    for (code, expected) in [
        ("print('bye'); import sys; sys.exit(7)", Outcome::Exited { code: 7 }),
        ("print('bye', flush=True); import os; os._exit(3)", Outcome::Exited { code: 3 }),
        ("print('bye', flush=True); import os; os.kill(os.getpid(), 11)", Outcome::Signaled { signal: 11 }),
    ] {
        let mut notebook = python().await;
        let ran = notebook.run(code).await;
        assert_eq!(ran.end.outcome, CellOutcome::Died { cause: expected }, "{ran:?}");
        assert_eq!(ran.stdout(), "bye\n");
    }
}

#[tokio::test]
async fn out_of_memory_takes_the_process_and_is_told() {
    let mut notebook = Notebook::with(KernelLanguage::Python, 96 << 20, options()).await;
    let ran = notebook.run("x = bytearray(1 << 30)\nfor i in range(0, len(x), 4096): x[i] = 1").await;
    assert_eq!(ran.end.outcome, CellOutcome::Died { cause: Outcome::OomKilled }, "{ran:?}");
    // The sandbox goes on.
    let next = cofferdam_kernels::Kernel::start(&notebook.sandbox, KernelLanguage::Python, options()).await;
    notebook.kernel = next.expect("another kernel");
    assert_eq!(notebook.run("1 + 1").await.well().plain(), "2");
}

#[tokio::test]
async fn stdin_is_at_its_end_and_variables_are_set() {
    let mut notebook = python().await;
    assert_eq!(notebook.run("input()").await.error().name, "EOFError");
    let env = vec![("CYNODE_STEP".to_owned(), "2".to_owned())];
    let code = "import os, subprocess\nprint(os.environ['CYNODE_STEP'], os.environ['CYNODE_JOB_ID'])\nsubprocess.run('cat; echo $CYNODE_STEP', shell=True)".to_owned();
    let ran = notebook.run_cell(Cell { code, env, timeout: None }).await.well();
    assert_eq!(ran.stdout(), "2 ses-1\n2\n");
}

#[tokio::test]
async fn much_output_comes_whole() {
    let mut notebook = python().await;
    let ran = notebook
        .run("import sys\nfor i in range(160): print('x' * 65535)\nsys.stderr.write('e' * 100000)")
        .await;
    assert_eq!(ran.told.stdout.len(), 160 * 65536);
    assert_eq!(ran.told.stderr.len(), 100_000);
    let ran =
        notebook.run("import os\nos.write(1, b'\\xff\\x00\\x1e'), os.system('echo sub; echo err >&2')").await;
    assert_eq!((&ran.told.stdout[..], ran.stderr().as_str()), (&b"\xff\x00\x1esub\n"[..], "err\n"));
}

#[tokio::test]
async fn a_fork_neither_answers_nor_repeats() {
    let mut notebook = python().await;
    let code = "import os, sys\nprint('before', end='')\npid = os.fork()\nif pid: os.waitpid(pid, 0)\nprint(' child' if pid == 0 else ' parent', end='')\ndisplay(1)";
    let ran = notebook.run(code).await.well();
    assert_eq!(ran.stdout(), "before child parent");
    assert_eq!(ran.told.shown.len(), 1, "{ran:?}");
    assert_eq!(notebook.run("2").await.well().plain(), "2");
    let code = "import multiprocessing as m\nq = m.get_context('fork').Queue()\np = m.get_context('fork').Process(target=q.put, args=(5,))\np.start()\nv = q.get()\np.join()\nv";
    assert_eq!(notebook.run(code).await.well().plain(), "5");
}

#[tokio::test]
async fn threads_write_on_after_their_cell_and_never_block() {
    let mut notebook = python().await;
    let code = "
import threading
ended = threading.Event()
def late():
    ended.wait()
    for i in range(200): print('l' * 9999)
    open('/workspace/done', 'w').close()
threading.Thread(target=late, daemon=True).start()
print('first')
threading.Timer(0.2, ended.set).start()";
    assert_eq!(notebook.run(code).await.well().stdout(), "first\n");
    // No cell runs while it writes.
    let folder = cofferdam_core::GuestPath::parse("path", "/workspace").expect("a path");
    let until = Instant::now() + PROMPTLY;
    loop {
        let entries = notebook.sandbox.list_files(&folder, 100).await.expect("a list");
        if entries.iter().any(|entry| entry.name == b"done") {
            break;
        }
        assert!(Instant::now() < until, "it is held up");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    let ran = notebook.run("print('next')").await;
    assert_eq!(ran.end.outcome, CellOutcome::Completed);
    assert!(ran.stdout().ends_with("next\n") && ran.told.stdout.len() < 300_000, "{}", ran.told.stdout.len());
    assert!(
        ran.stderr().contains("bytes that were written before this cell were dropped"),
        "{}",
        ran.stderr()
    );
}

#[tokio::test]
async fn values_are_shown_in_every_form_they_offer() {
    let mut notebook = python().await;
    let code = r#"
class Rich:
    def _repr_html_(self): return "<b>1</b>"
    def _repr_markdown_(self): return "**1**"
    def _repr_svg_(self): return "<svg/>"
    def _repr_png_(self): return b"\x89PNG"
    def _repr_json_(self): return {"a": [1]}
    def _repr_latex_(self): raise ValueError
    def __repr__(self): return "Rich()"
class Bundle:
    def _repr_mimebundle_(self, include=None, exclude=None): return {"text/html": "<i>", "text/plain": "b"}, {}
display(Bundle())
Rich"#;
    let ran = notebook.run(code).await.well();
    assert_eq!(ran.told.shown[0].kind, ResultKind::Display);
    let texts: Vec<_> = ran.told.shown[0].data.iter().map(|(k, v)| (k.as_str(), v.as_str())).collect();
    assert_eq!(texts, [("text/html", "<i>"), ("text/plain", "b")]);
    assert_eq!(ran.told.shown[1].data.len(), 1, "a class has only its text");
    let ran = notebook.run("Rich()").await.well();
    let texts: Vec<_> = ran.told.shown[0].data.iter().map(|(k, v)| (k.as_str(), v.as_str())).collect();
    let expected = [
        ("application/json", r#"{"a": [1]}"#),
        ("image/png", "iVBORw=="),
        ("image/svg+xml", "<svg/>"),
        ("text/html", "<b>1</b>"),
        ("text/markdown", "**1**"),
        ("text/plain", "Rich()"),
    ];
    assert_eq!(texts, expected);
    let ran = notebook.run("'x' * (20 << 20)").await.well();
    assert!(ran.plain().len() < 2 << 20 && ran.plain().contains("not shown"));
    let ran = notebook.run("for i in range(2000): display(i)").await;
    assert_eq!(ran.end.outcome, CellOutcome::Completed);
    assert_eq!(ran.told.shown.len(), 500);
}

#[tokio::test]
async fn results_of_several_threads_and_interrupts_keep_frames_whole() {
    let mut notebook = python().await;
    let code = "import threading\ntext = 'x' * 3000000\nthreads = [threading.Thread(target=lambda: [display(text) for _ in range(4)]) for _ in range(4)]\n[t.start() for t in threads]; [t.join() for t in threads];";
    let ran = notebook.run(code).await.well();
    assert_eq!(ran.told.shown.len(), 16);
    // A signal that comes in the middle of a frame.
    let code = "
import signal
class Halting:
    def __init__(self, channel): self.channel = channel
    def __getattr__(self, name): return getattr(self.channel, name)
    def sendall(self, data):
        self.channel.sendall(data[:5])
        signal.raise_signal(2)
        self.channel.sendall(data[5:])
kernel = display.__globals__
kernel['channel'] = Halting(kernel['channel'])
display(1)
display(2)";
    let ran = notebook.run(code).await;
    assert_eq!(ran.error().name, "KeyboardInterrupt", "{:?}", ran.end);
    assert_eq!(ran.plain(), "1");
}

#[tokio::test]
async fn figures_and_tables_show_without_extra_code() {
    let mut notebook = python().await;
    let png = |text: &str| text.starts_with("iVBORw0KGgo");
    let ran = notebook.run("import matplotlib.pyplot as plt\nplt.plot([1, 2, 3]);").await.well();
    assert_eq!(ran.told.shown.len(), 1, "{:?}", ran.end);
    assert_eq!(ran.told.shown[0].kind, ResultKind::Display);
    assert!(png(&ran.told.shown[0].data["image/png"]));
    let ran = notebook.run("plt.plot([1]); plt.show(); print('shown'); plt.plot([2]);").await.well();
    assert_eq!((ran.told.shown.len(), ran.stdout().as_str()), (2, "shown\n"));
    let ran = notebook.run("fig, ax = plt.subplots()\nfig").await.well();
    assert_eq!(ran.told.shown.len(), 1);
    assert!(png(&ran.told.shown[0].data["image/png"]) && ran.told.shown[0].kind == ResultKind::Result);
    assert!(notebook.run("1;").await.well().told.shown.is_empty(), "a figure is shown once");
    // A program that the cell starts draws as it always does.
    let code = "import subprocess, sys\nsubprocess.run([sys.executable, '-c', 'import matplotlib.pyplot as p; p.plot([1]); p.savefig(\"/workspace/a.png\")'], check=True).returncode";
    assert_eq!(notebook.run(code).await.well().plain(), "0");
    let ran = notebook.run("import pandas as pd\npd.DataFrame({'a': [1, 2]})").await.well();
    let data = &ran.told.shown[0].data;
    assert!(data["text/html"].contains("<table") && data["text/plain"].contains("0  1"), "{data:?}");
}

#[tokio::test]
async fn a_step_is_quick() {
    let mut notebook = python().await;
    notebook.run("x = 1").await.well();
    let mut times = Vec::new();
    for _ in 0..200 {
        let begun = Instant::now();
        notebook.run("x + 1").await.well();
        times.push(begun.elapsed());
    }
    times.sort();
    println!("a step of x + 1: median {:?}, 95th of 100 {:?}", times[100], times[190]);
    // Far above what it takes, so that only a wait that should not be there is noticed.
    assert!(times[100] < Duration::from_millis(20), "{:?}", times[100]);
}

#[tokio::test]
async fn a_kernel_that_lies_is_ended_and_harms_nobody() {
    for (lie, told) in [
        ("b'nonsense\\n'", "not a kind and a length"),
        ("b'end 999999999\\n'", "longer than"),
        ("b'end 1\\n}'", "not what its kind says"),
        ("b'ready 15\\n{\"version\":\"1\"}'", "ready in the midst"),
        ("b'display 2\\n{}' * 100000", "at most"),
    ] {
        let mut notebook = python().await;
        let code = format!(
            "import gc, _socket, time\nc = [o for o in gc.get_objects() if isinstance(o, _socket.socket)][0]\nc.sendall({lie})\ntime.sleep(1000)"
        );
        // A socket is not tracked by the collector in every Python; the file descriptor always is there.
        let code = code.replace(
            "c = [o for o in gc.get_objects() if isinstance(o, _socket.socket)][0]",
            "import os, socket\nc = socket.socket(fileno=[int(f) for f in os.listdir('/proc/self/fd') if os.path.exists(f'/proc/self/fd/{f}') and os.readlink(f'/proc/self/fd/{f}').startswith('socket:')][0])",
        );
        let ran = notebook.run(&code).await;
        let CellOutcome::Died { cause: Outcome::Failed { code, message } } = &ran.end.outcome else {
            panic!("{lie}: {ran:?}")
        };
        assert_eq!(code, "kernel_protocol");
        assert!(message.contains(told), "{lie}: {message}");
        let next =
            cofferdam_kernels::Kernel::start(&notebook.sandbox, KernelLanguage::Python, options()).await;
        notebook.kernel = next.expect("another kernel");
        assert_eq!(notebook.run("1").await.well().plain(), "1");
    }
}

#[tokio::test]
async fn a_kernel_that_is_dropped_or_abandoned_is_gone() {
    let mut notebook = python().await;
    let mut told = Told::default();
    let running = notebook.kernel.run(cell("while True: pass"), &mut told);
    let abandoned = tokio::time::timeout(Duration::from_millis(300), running);
    assert!(abandoned.await.is_err(), "it ended");
    assert!(!notebook.kernel.is_alive());
    let again = notebook.kernel.run(cell("1"), &mut Told::default()).await;
    assert!(matches!(again, Err(cofferdam_kernels::KernelError::Over)), "{again:?}");
    let process = notebook.sandbox.attach(notebook.kernel.process_id()).expect("it is there");
    let next = cofferdam_kernels::Kernel::start(&notebook.sandbox, KernelLanguage::Python, options()).await;
    drop(std::mem::replace(&mut notebook.kernel, next.expect("another kernel")));
    let ended = tokio::time::timeout(PROMPTLY, process.wait()).await.expect("it ends").expect("a status");
    assert_eq!(ended, cofferdam_backend::ExitStatus::Signaled(9));
    assert_eq!(notebook.run("1").await.well().plain(), "1");
}

#[tokio::test]
async fn an_interpreter_that_is_not_there_or_not_one_is_told() {
    let backend = backend();
    let sandbox = sandbox(&backend, 256 << 20).await;
    let start = |path: &str| {
        let mut options = options();
        options.env = vec![("PATH".to_owned(), path.to_owned())];
        cofferdam_kernels::Kernel::start(&sandbox, KernelLanguage::Python, options)
    };
    let error = start("/nowhere").await.expect_err("there is none").to_string();
    assert!(error.contains("python3"), "{error}");
    let script: cofferdam_backend::Reader = Box::new(&b"#!/bin/sh\necho broken >&2; exit 3\n"[..]);
    let path = cofferdam_core::GuestPath::parse("path", "/workspace/bin/python3").expect("a path");
    sandbox.write_file(&path, 0o755, script).await.expect("written");
    let error = start("/workspace/bin:/usr/bin").await.expect_err("it is none").to_string();
    assert!(error.contains("broken") && error.contains('3'), "{error}");
}
