//! How a command ended is told by the exit code, and by one line where the code alone does not say it.

use crate::support::{command, finish, marker, run};
use rustix::process::{Pid, Signal, kill_process};
use std::io::{BufRead, BufReader, Read};

#[test]
fn the_exit_code_is_the_commands() {
    for (code, expected) in [("pass", 0), ("raise SystemExit(3)", 3), ("raise SystemExit(255)", 255)] {
        let answer = run(&["-c", code]);
        assert_eq!((answer.code, answer.stderr.as_str()), (Some(expected), ""), "{code}");
    }
}

#[test]
fn a_signal_is_128_and_its_number() {
    for (name, number) in [("SEGV", 11), ("KILL", 9), ("TERM", 15), ("ABRT", 6)] {
        let answer = run(&["--json", "--", "sh", "-c", &format!("kill -{name} $$")]);
        assert_eq!(answer.code, Some(128 + number), "{answer:?}");
        let result = answer.json();
        assert_eq!(result["outcome"], serde_json::json!({ "kind": "signaled", "signal": number }));
        assert!(result["exit_code"].is_null());
    }
}

#[test]
fn an_exit_code_that_looks_like_a_signal_is_not_taken_for_one() {
    let result = run(&["--json", "--", "sh", "-c", "exit 137"]).json();
    assert_eq!(result["outcome"], serde_json::json!({ "kind": "exited", "code": 137 }));
}

#[test]
fn a_time_out_is_124() {
    let answer = run(&["--timeout", "200ms", "--grace", "100ms", "--", "sleep", "100"]);
    answer.says(124, "timed out after 200ms");
}

#[test]
fn on_time_out_the_process_is_asked_first() {
    let word = marker("asked");
    let code = "import signal, sys, time\n\
                signal.signal(signal.SIGTERM, lambda *_: (print(sys.argv[1], flush=True), sys.exit(7)))\n\
                print('ready', flush=True)\n\
                time.sleep(100)";
    let answer = run(&["--timeout", "2s", "--grace", "20s", "-c", code, &word]);
    assert_eq!(answer.stdout, format!("ready\n{word}\n"), "{answer:?}");
    answer.says(124, "timed out after 2s");
}

#[test]
fn after_its_grace_a_process_that_ignores_the_signal_is_killed() {
    let script = "trap '' TERM; echo ready; while :; do sleep 100; done";
    let answer = run(&["--json", "--timeout", "1s", "--grace", "200ms", "--", "sh", "-c", script]);
    assert_eq!(answer.code, Some(124));
    let result = answer.json();
    assert_eq!(result["outcome"]["kind"], "timed_out");
    assert_eq!(result["stdout"], "ready\n");
    let took = result["duration_ms"].as_u64().expect("a number");
    assert!((1200..20_000).contains(&took), "{took}");
}

#[test]
fn what_is_not_found_is_127() {
    let line = "the program could not be started: no-such-program: not found in the sandbox";
    run(&["--", "no-such-program"]).says(127, line);
    let answer = run(&["--", "/no/such/program"]);
    assert_eq!(answer.code, Some(127));
    assert!(answer.stderr.contains("/no/such/program: not found"), "{answer:?}");
}

#[test]
fn what_cannot_be_executed_is_126() {
    for path in ["/etc/passwd", "/usr"] {
        let answer = run(&["--", path]);
        let line = format!("the program could not be started: {path}: cannot be executed: ");
        assert_eq!(answer.code, Some(126), "{answer:?}");
        assert!(answer.stderr.starts_with(&format!("cofferdam: {line}")), "{answer:?}");
        assert_eq!(answer.stderr.lines().count(), 1);
    }
}

#[test]
fn a_program_that_is_the_working_directory_is_126_as_well() {
    let answer = run(&["--", "/workspace"]);
    assert_eq!(answer.code, Some(126), "{answer:?}");
}

#[test]
fn being_asked_to_end_passes_the_signal_on() {
    let code = "import signal, sys, time\n\
                signal.signal(signal.SIGTERM, lambda *_: (print('asked'), sys.exit(0)))\n\
                print('ready', flush=True)\n\
                time.sleep(100)";
    let mut child = command(&["-c", code]).spawn().expect("it starts");
    let mut stdout = BufReader::new(child.stdout.take().expect("a pipe"));
    let mut line = String::new();
    stdout.read_line(&mut line).expect("its output can be read");
    assert_eq!(line, "ready\n");
    kill_process(Pid::from_child(&child), Signal::TERM).expect("it can be signalled");
    let mut rest = String::new();
    stdout.read_to_string(&mut rest).expect("its output can be read");
    assert_eq!(rest, "asked\n");
    finish(child).says(143, "cancelled by SIGTERM");
}
