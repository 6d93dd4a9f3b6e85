//! Starting processes: what they get, how they end, who outlives whom.

use super::support::*;
use crate::{Backend, ExitStatus, ProcessId, ProcessSpec};
use tokio::io::AsyncReadExt;
use tokio::time::timeout;

const SIGTERM: i32 = 15;
const SIGKILL: i32 = 9;

pub async fn exit_codes_come_back(backend: &dyn Backend) {
    let sandbox = sandbox(backend).await;
    for code in 0..=255 {
        let output = run(&*sandbox, sh(&format!("exit {code}"))).await;
        assert_eq!(output.status, ExitStatus::Exited(code));
    }
}

pub async fn signals_come_back(backend: &dyn Backend) {
    let sandbox = sandbox(backend).await;
    let signals = [
        ("HUP", 1),
        ("INT", 2),
        ("ABRT", 6),
        ("KILL", SIGKILL),
        ("USR1", 10),
        ("SEGV", 11),
        ("TERM", SIGTERM),
    ];
    for (name, number) in signals {
        let output = run(&*sandbox, sh(&format!("kill -{name} $$"))).await;
        assert_eq!(output.status, ExitStatus::Signaled(number), "{name}");
    }
}

pub async fn missing_programs_are_not_found(backend: &dyn Backend) {
    let sandbox = sandbox(backend).await;
    for program in ["no-such-program", "/no/such/program", "/workspace/missing", "./missing"] {
        assert_not_found(program, sandbox.start(process([program])).await);
    }
    assert_still_runs(&*sandbox).await;
}

pub async fn files_without_permission_are_not_run(backend: &dyn Backend) {
    let sandbox = sandbox(backend).await;
    write(&*sandbox, "/workspace/plain", 0o644, b"#!/bin/sh\nexit 0\n").await.expect("a file");
    for program in ["/workspace/plain", "./plain", "/workspace"] {
        assert_not_permitted(program, sandbox.start(process([program])).await);
    }
    assert_still_runs(&*sandbox).await;
}

/// A shell would run it as a script of its own; a sandbox starts programs, and is no shell.
pub async fn scripts_without_a_first_line_are_not_run(backend: &dyn Backend) {
    let sandbox = sandbox(backend).await;
    for content in ["echo no\n", ""] {
        write(&*sandbox, "/workspace/script", 0o755, content.as_bytes()).await.expect("a file");
        assert_not_permitted(content, sandbox.start(process(["/workspace/script"])).await);
    }
    assert_still_runs(&*sandbox).await;
}

pub async fn scripts_in_the_workspace_run(backend: &dyn Backend) {
    let sandbox = sandbox(backend).await;
    write(&*sandbox, "/workspace/script", 0o755, b"#!/bin/sh\necho \"$0 $1\"\nexit 7\n")
        .await
        .expect("a file");
    for program in ["/workspace/script", "./script"] {
        let output = run(&*sandbox, process([program, "one"])).await;
        assert_eq!(output.status, ExitStatus::Exited(7), "{output:?}");
        assert_eq!(output.stdout(), format!("{program} one\n"));
    }
}

pub async fn names_are_looked_up_in_the_given_path(backend: &dyn Backend) {
    let sandbox = sandbox(backend).await;
    write(&*sandbox, "/workspace/bin/mine", 0o755, b"#!/bin/sh\nexit 7\n").await.expect("a file");
    let with_path =
        |path: &str| ProcessSpec { env: vec![("PATH".to_owned(), path.to_owned())], ..process(["mine"]) };
    let output = run(&*sandbox, with_path("/no/such/folder:/workspace/bin:/usr/bin")).await;
    assert_eq!(output.status, ExitStatus::Exited(7));
    assert_not_found("another PATH", sandbox.start(with_path("/usr/bin:/bin")).await);
}

pub async fn impossible_requests_are_invalid(backend: &dyn Backend) {
    let sandbox = sandbox(backend).await;
    assert_invalid("no argv", sandbox.start(process::<String>([])).await);
    assert_invalid("NUL in an argument", sandbox.start(process(["/bin/echo", "a\0b"])).await);
    let env = vec![("A".to_owned(), "a\0b".to_owned())];
    let spec = ProcessSpec { env, ..process(["/bin/echo"]) };
    assert_invalid("NUL in the environment", sandbox.start(spec).await);
    assert_still_runs(&*sandbox).await;
}

pub async fn arguments_arrive_exactly(backend: &dyn Backend) {
    let sandbox = sandbox(backend).await;
    let arguments = [
        "",
        "plain",
        "two words",
        "line\nbreak\n",
        "tab\t",
        "ünïcödé 漢字 🦀",
        "*",
        "$HOME",
        "'\"\\",
        "-n",
        "",
    ];
    let script = r#"for argument; do printf '%s\0' "$argument"; done"#;
    let argv = ["/bin/sh", "-c", script, "sh"].into_iter().chain(arguments);
    let output = run(&*sandbox, process(argv)).await;
    assert_eq!(output.status, ExitStatus::Exited(0), "{output:?}");
    let expected: String = arguments.iter().map(|argument| format!("{argument}\0")).collect();
    assert_eq!(output.stdout(), expected);
}

/// Code comes as an argument, so the kernel's own bounds (128 KiB each, far more together) are the bounds.
pub async fn long_arguments_arrive(backend: &dyn Backend) {
    let sandbox = sandbox(backend).await;
    let long = "x".repeat(120 * 1024);
    let script = r#"printf '%s' "$#:${#1}:${#2}:${#3}:${#4}""#;
    let output = run(&*sandbox, process(["/bin/sh", "-c", script, "sh", &long, &long, &long, &long])).await;
    assert_eq!(output.status, ExitStatus::Exited(0), "{}", output.stderr());
    assert_eq!(output.stdout(), "4:122880:122880:122880:122880");

    let many = ["/bin/sh", "-c", "echo $#", "sh"].into_iter().chain(std::iter::repeat_n("a", 5000));
    assert_eq!(run(&*sandbox, process(many)).await.stdout(), "5000\n");
}

pub async fn environment_is_exact(backend: &dyn Backend) {
    let sandbox = sandbox(backend).await;
    let variables =
        [("A", "1"), ("EMPTY", ""), ("LINES", "one\ntwo"), ("SPACED", " a = b "), ("ÜMLAUT", "ß")];
    for variables in [&variables[..], &[]] {
        let env = variables.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect();
        let output = run(&*sandbox, ProcessSpec { env, ..process(["/usr/bin/env", "-0"]) }).await;
        assert_eq!(output.status, ExitStatus::Exited(0), "{output:?}");
        let stdout = output.stdout();
        let mut seen: Vec<&str> = stdout.split_terminator('\0').collect();
        seen.sort_unstable();
        let mut expected: Vec<String> =
            variables.iter().map(|(key, value)| format!("{key}={value}")).collect();
        expected.sort_unstable();
        assert_eq!(seen, expected);
    }
}

pub async fn working_directory_is_the_given_one(backend: &dyn Backend) {
    let sandbox = sandbox(backend).await;
    for folder in ["/workspace", "/tmp", "/usr/bin", "/"] {
        let output = run(&*sandbox, ProcessSpec { cwd: path(folder), ..sh("pwd -P") }).await;
        assert_eq!(output.stdout(), format!("{folder}\n"), "{output:?}");
    }
    let missing = ProcessSpec { cwd: path("/workspace/missing"), ..sh("pwd -P") };
    assert_not_found("a missing folder", sandbox.start(missing).await);
}

/// Links to folders are fine. A link to a descriptor is not: it may be one of the backend's own, and lead out.
pub async fn working_directory_is_no_link_to_a_descriptor(backend: &dyn Backend) {
    const LINKS: usize = 32;
    let sandbox = sandbox(backend).await;
    let script =
        format!("ln -s /tmp inside; for i in $(seq 0 {LINKS}); do ln -s /proc/self/fd/$i fd$i; done");
    sh_ok(&*sandbox, &script).await;
    let inside = ProcessSpec { cwd: path("/workspace/inside"), ..sh("pwd -P") };
    assert_eq!(run(&*sandbox, inside).await.stdout(), "/tmp\n");
    for i in 0..=LINKS {
        let spec = ProcessSpec { cwd: path(&format!("/workspace/fd{i}")), ..sh("readlink /proc/self/cwd") };
        if let Ok(process) = sandbox.start(spec).await {
            panic!("/proc/self/fd/{i} was entered: {:?}", finish(&*process).await);
        }
    }
}

pub async fn working_directory_is_made_where_asked(backend: &dyn Backend) {
    let sandbox = sandbox(backend).await;
    for folder in ["/workspace/a/b", "/tmp/c", "/workspace"] {
        let spec = ProcessSpec { cwd: path(folder), make_cwd: true, ..sh("pwd -P && touch mine") };
        let output = run(&*sandbox, spec).await;
        assert_eq!(output.status, ExitStatus::Exited(0), "{output:?}");
        assert_eq!(output.stdout(), format!("{folder}\n"));
    }
}

pub async fn working_directory_is_not_made_on_a_read_only_root(backend: &dyn Backend) {
    let sandbox = sandbox(backend).await;
    for folder in ["/made-by-nobody", "/usr/made-by-nobody"] {
        let spec = ProcessSpec { cwd: path(folder), make_cwd: true, ..sh("pwd -P") };
        assert_not_permitted(folder, sandbox.start(spec).await);
    }
    assert_still_runs(&*sandbox).await;
}

/// Nothing of the backend's own signal handling is inherited, such as an ignored SIGPIPE.
pub async fn signal_state_is_the_default(backend: &dyn Backend) {
    let sandbox = sandbox(backend).await;
    let status = run(&*sandbox, process(["/bin/cat", "/proc/self/status"])).await.stdout();
    for field in ["SigBlk", "SigIgn"] {
        let line = status.lines().find_map(|line| line.strip_prefix(field)?.strip_prefix(':'));
        let set = line.unwrap_or_else(|| panic!("no {field} in {status}")).trim();
        assert!(set.bytes().all(|digit| digit == b'0'), "{field}: {set}");
    }
}

pub async fn wait_answers_the_same_again(backend: &dyn Backend) {
    let sandbox = sandbox(backend).await;
    let process = start(&*sandbox, sh("exit 7")).await;
    let (first, second) = tokio::join!(process.wait(), process.wait());
    for status in [first, second, process.wait().await] {
        assert_eq!(status.expect("a status"), ExitStatus::Exited(7));
    }
}

pub async fn attach_gives_the_same_process(backend: &dyn Backend) {
    let sandbox = sandbox(backend).await;
    let first = start(&*sandbox, with_stdin(sh("cat; exit 7"))).await;
    let second = sandbox.attach(first.id()).expect("another handle");
    assert_eq!(first.id(), second.id());

    let (stdin, mut stdout) = (second.take_stdin(), second.take_stdout().expect("stdout"));
    assert!(first.take_stdin().is_none() && first.take_stdout().is_none(), "a stream was taken twice");
    drop(first);

    drop(stdin.expect("stdin"));
    assert_eq!(read_to_end(&mut stdout).await, b"");
    assert_eq!(second.wait().await.expect("a status"), ExitStatus::Exited(7));

    let third = sandbox.attach(second.id()).expect("a handle to a process that ended");
    assert_eq!(third.wait().await.expect("a status"), ExitStatus::Exited(7));
    assert_refused("attach to no process", sandbox.attach(ProcessId(u32::MAX)));
}

pub async fn signals_reach_the_whole_group(backend: &dyn Backend) {
    let sandbox = sandbox(backend).await;
    // The child says that it is ready: until it has become another program, its parent's trap is its own.
    let child = "sh -c 'echo ready; exec sleep 1000'";
    let script = format!("trap 'exit 7' TERM; {child} & while :; do sleep 0.05; done");
    let (process, mut stdout) = start_ready(&*sandbox, sh(&script)).await;
    process.signal(SIGTERM).await.expect("a signal sent");
    assert_eq!(promptly("its end", process.wait()).await.expect("a status"), ExitStatus::Exited(7));
    // The child in the background holds stdout open for as long as it lives.
    assert_eq!(read_to_end(&mut stdout).await, b"");

    let (process, _stdout) = start_ready(&*sandbox, sh("trap '' TERM; echo ready; sleep 1000")).await;
    process.signal(SIGKILL).await.expect("a signal sent");
    assert_eq!(promptly("its end", process.wait()).await.expect("a status"), ExitStatus::Signaled(SIGKILL));
}

pub async fn children_outlive_their_parent(backend: &dyn Backend) {
    let sandbox = sandbox(backend).await;
    let process = start(&*sandbox, sh("sleep 1000 & echo $!")).await;
    let mut stdout = process.take_stdout().expect("stdout");
    let status = promptly("the parent's end", process.wait()).await;
    assert_eq!(status.expect("a status"), ExitStatus::Exited(0));

    let mut child = [0; 64];
    let read = promptly("the child's pid", stdout.read(&mut child)).await.expect("the child's pid");
    let child = String::from_utf8_lossy(&child[..read]).trim().to_owned();
    assert_still_runs(&*sandbox).await;
    sh_ok(&*sandbox, &format!("kill -0 {child}")).await;
    assert!(timeout(A_WHILE, stdout.read_u8()).await.is_err(), "the child's stdout is closed");

    sandbox.destroy().await.expect("its end");
    assert_eq!(read_to_end(&mut stdout).await, b"");
}

pub async fn orphans_are_reaped(backend: &dyn Backend) {
    let sandbox = sandbox(backend).await;
    sh_ok(&*sandbox, "i=0; while [ $i -lt 30 ]; do (sleep 0 &); i=$((i + 1)); done").await;
    wait_until("every orphan reaped", PROMPTLY, async || {
        let left = sh_ok(&*sandbox, "grep -lE '^(State:.Z|Name:.sleep)' /proc/[0-9]*/status; true").await;
        left.is_empty()
    })
    .await;
}

pub async fn processes_share_files(backend: &dyn Backend) {
    let sandbox = sandbox(backend).await;
    sh_ok(&*sandbox, "mkfifo /workspace/fifo /tmp/fifo").await;
    // Each side of a FIFO waits for the other, so both must run at the same time.
    let (there, back) = tokio::join!(
        run(&*sandbox, sh("echo there > fifo; cat /tmp/fifo")),
        run(&*sandbox, sh("cat fifo; echo back > /tmp/fifo")),
    );
    assert_eq!((there.stdout(), back.stdout()), ("back\n".to_owned(), "there\n".to_owned()));
}

/// Whatever a backend makes ahead, a process cannot tell that it was the first.
pub async fn the_first_process_is_like_the_next(backend: &dyn Backend) {
    let look = "grep -v -e ctxt -e Pid -e Ngid -e Tgid -e Vm -e Rss -e NStgid -e NSpid -e NSpgid -e NSsid \
                -e Cpus -e Mems /proc/self/status; for fd in 0 1 2 3 4 5 6 7 8 9; do \
                readlink /proc/self/fd/$fd | sed 's/[0-9]//g'; done; ulimit -a; umask; pwd; env; \
                test \"$(cut -d' ' -f6 /proc/$$/stat)\" = $$ && echo leads; cat /proc/self/cgroup; set -- /proc/[0-9]*; echo $#";
    let sandbox = sandbox(backend).await;
    let (first, next) = (run(&*sandbox, sh(look)).await, run(&*sandbox, sh(look)).await);
    assert_eq!(first.stdout(), next.stdout());
    assert!(first.stdout().contains("leads"), "{}", first.stdout());
}
