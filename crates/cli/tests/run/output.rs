//! Output: live, kept up to a limit, and as bytes where it is not text.

use crate::support::{command, finish, run};
use std::io::{BufRead, BufReader};

#[test]
fn streams_are_kept_apart() {
    let answer = run(&["--", "sh", "-c", "echo out; echo err >&2"]);
    assert_eq!((answer.stdout.as_str(), answer.stderr.as_str()), ("out\n", "err\n"));
}

#[test]
fn the_result_is_alone_on_stdout() {
    let answer = run(&["--json", "--", "sh", "-c", "echo out; echo err >&2; exit 3"]);
    assert_eq!((answer.code, answer.stderr.as_str()), (Some(3), ""));
    let result = answer.json();
    assert_eq!((&result["stdout"], &result["stderr"]), (&"out\n".into(), &"err\n".into()));
    assert_eq!(result["exit_code"], 3);
    let mut names: Vec<_> = result.as_object().expect("an object").keys().map(String::as_str).collect();
    names.sort_unstable();
    let expected = [
        "artifacts",
        "artifacts_skipped",
        "duration_ms",
        "exit_code",
        "isolation",
        "limits_hit",
        "network_policy_applied",
        "outcome",
        "resource_usage",
        "sandbox_id",
        "stderr",
        "stderr_base64",
        "stderr_dropped_bytes",
        "stderr_truncated",
        "stdout",
        "stdout_base64",
        "stdout_dropped_bytes",
        "stdout_truncated",
        "warnings",
    ];
    assert_eq!(names, expected);
}

#[test]
fn output_comes_while_the_job_runs() {
    let mut child = command(&["-i", "--", "sh", "-c", "echo first; read line; echo $line"])
        .stdin(std::process::Stdio::piped())
        .spawn()
        .expect("it starts");
    let mut stdout = BufReader::new(child.stdout.take().expect("a pipe"));
    let mut line = String::new();
    stdout.read_line(&mut line).expect("its output can be read");
    assert_eq!(line, "first\n");
    use std::io::Write;
    child.stdin.take().expect("a pipe").write_all(b"second\n").expect("its input can be written");
    line.clear();
    stdout.read_line(&mut line).expect("its output can be read");
    assert_eq!(line, "second\n");
    assert_eq!(finish(child).code, Some(0));
}

#[test]
fn the_result_keeps_8_mib_and_counts_the_rest() {
    const KEPT: u64 = 8 << 20;
    let script = "head -c 9000000 /dev/zero | tr '\\0' x; head -c 8388609 /dev/zero | tr '\\0' y >&2";
    let result = run(&["--json", "--", "sh", "-c", script]).json();
    for (stream, letter, written) in [("stdout", 'x', 9_000_000), ("stderr", 'y', KEPT + 1)] {
        let text = result[stream].as_str().expect("text");
        assert_eq!(text.len() as u64, KEPT, "{stream}");
        assert!(text.chars().all(|c| c == letter), "{stream}");
        assert_eq!(result[format!("{stream}_truncated")], true);
        assert_eq!(result[format!("{stream}_dropped_bytes")], written - KEPT);
    }
    let hit = &result["limits_hit"][0];
    assert_eq!((&hit["limit"], &hit["count"]), (&"output".into(), &2.into()));
    assert_eq!(result["outcome"]["kind"], "exited");
}

#[test]
fn live_output_is_not_cut() {
    let answer = run(&["--", "sh", "-c", "head -c 9000000 /dev/zero | tr '\\0' x"]);
    assert_eq!(answer.stdout.len(), 9_000_000);
}

#[test]
fn bytes_that_are_not_text_are_exact() {
    let result = run(&["--json", "--", "printf", "a\\377b"]).json();
    assert_eq!((&result["stdout"], &result["stdout_base64"]), (&"a\u{fffd}b".into(), &"Yf9i".into()));
    assert!(result["stderr_base64"].is_null());
}
