//! What a process finds: its environment, its working directory, its user, its input.

use crate::support::{Folder, command, finish, marker, run};
use std::collections::BTreeMap;
use std::io::Write;
use std::process::Stdio;

fn variables(text: &str) -> BTreeMap<&str, &str> {
    text.lines().filter_map(|line| line.split_once('=')).collect()
}

#[test]
fn the_contract_is_set_and_wins() {
    let answer =
        run(&["--task-id", "TASK-7", "--env", "CYNODE_JOB_ID=forged", "--env", "A=1=2", "--", "env"]);
    assert_eq!(answer.code, Some(0));
    let seen = variables(&answer.stdout);
    assert_eq!(seen["CYNODE_TASK_ID"], "TASK-7");
    assert!(seen["CYNODE_JOB_ID"].starts_with("job-"), "{seen:?}");
    assert_eq!(seen["CYNODE_WORKSPACE_DIR"], "/workspace");
    assert_eq!(seen["CYNODE_ARTIFACTS_DIR"], "/workspace/.artifacts");
    assert_eq!(seen["A"], "1=2");
    answer.says(0, "warning: CYNODE_JOB_ID is set by the sandbox; the requested value was ignored");
}

#[test]
fn warnings_are_in_the_result() {
    let answer = run(&["--json", "--env", "CYNODE_X=1", "--", "true"]);
    let expected = ["CYNODE_X is set by the sandbox; the requested value was ignored"];
    assert_eq!(answer.json()["warnings"], serde_json::json!(expected));
    assert_eq!(answer.stderr, "");
}

#[test]
fn nothing_of_the_hosts_environment_gets_in() {
    let secret = marker("secret");
    let mut command =
        command(&["--", "sh", "-c", "env; cat /proc/self/environ /proc/*/environ /proc/*/cmdline"]);
    command.env("COFFERDAM_TEST_SECRET", &secret).env("LD_LIBRARY_PATH", "/tmp").env("PYTHONPATH", "/tmp");
    let answer = finish(command.spawn().expect("it starts"));
    assert!(!answer.stdout.contains(&secret) && !answer.stderr.contains(&secret), "{answer:?}");
    let mut names: Vec<_> =
        variables(answer.stdout.split('\0').next().unwrap_or_default()).into_keys().collect();
    names.retain(|name| !["PWD", "SHLVL", "_", "OLDPWD"].contains(name));
    let expected = [
        "CYNODE_ARTIFACTS_DIR",
        "CYNODE_JOB_ID",
        "CYNODE_TASK_ID",
        "CYNODE_WORKSPACE_DIR",
        "HOME",
        "LANG",
        "PATH",
        "TZ",
        "USER",
    ];
    assert_eq!(names, expected);
}

#[test]
fn the_user_is_nobody_of_the_hosts() {
    let answer = run(&["--", "sh", "-c", "id -u; id -g; id -un; hostname; pwd; ls -A /root /home /var"]);
    assert!(answer.stdout.starts_with("1000\n1000\nsandbox\nsandbox\n/workspace\n"), "{answer:?}");
    assert_eq!(answer.stderr.matches("No such file or directory").count(), 3, "{answer:?}");
}

#[test]
fn the_working_directory_is_made_where_it_can_be() {
    for folder in ["/tmp/a/b", "/workspace/x", "/usr/bin", "/"] {
        assert_eq!(run(&["--workdir", folder, "--", "pwd"]).stdout, format!("{folder}\n"));
    }
    let answer = run(&["--workdir", "/usr/made/up", "--", "pwd"]);
    let line = "cofferdam: the working directory cannot be used: /usr/made/up: ";
    assert_eq!((answer.code, answer.stdout.as_str()), (Some(125), ""));
    assert!(answer.stderr.starts_with(line) && answer.stderr.lines().count() == 1, "{answer:?}");
}

#[test]
fn input_is_passed_on_when_asked_for() {
    let text = "line\n".repeat(100_000);
    for (words, expected) in [(&["-i", "--", "wc", "-c"][..], "500000\n"), (&["--", "wc", "-c"], "0\n")] {
        let mut child = command(words).stdin(Stdio::piped()).spawn().expect("it starts");
        let mut stdin = child.stdin.take().expect("a pipe");
        let text = text.clone();
        // Where input is not passed on, nobody reads it.
        let writer = std::thread::spawn(move || stdin.write_all(text.as_bytes()));
        assert_eq!(finish(child).stdout, expected, "{words:?}");
        let _ = writer.join();
    }
}

#[test]
fn a_terminal_is_one() {
    let answer =
        run(&["--tty", "--", "sh", "-c", "test -t 0 && test -t 1 && test -t 2 && tty && echo $TERM"]);
    assert_eq!(answer.stdout, "/dev/pts/0\r\nxterm-256color\r\n", "{answer:?}");
}

#[test]
fn there_is_no_network_but_loopback() {
    let code = "import socket\n\
                a = socket.create_server(('127.0.0.1', 0)); b = socket.create_connection(a.getsockname())\n\
                print('loopback')\n\
                print([name for _, name in socket.if_nameindex()])\n\
                try: socket.create_connection(('192.0.2.1', 80), 5)\n\
                except OSError as e: print(e.strerror)";
    for policy in ["none", "restricted"] {
        let answer = run(&["--network", policy, "-c", code]);
        assert_eq!(answer.stdout, "loopback\n['lo']\nNetwork is unreachable\n", "{policy}: {answer:?}");
    }
}

#[test]
fn a_folder_can_be_the_root() {
    let root = Folder::new();
    let answer = run(&["--rootfs", root.0.to_str().expect("text"), "--", "true"]);
    assert_eq!(answer.code, Some(127), "{answer:?}");
    let answer = run(&["--rootfs", root.0.to_str().expect("text"), "-c", "1"]);
    answer.says(127, "the image has no python3, which python needs; it has none of the known languages");
}
