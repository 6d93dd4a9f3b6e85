//! What `run` does before `main`, and what it leaves for later.

use crate::support::{command, finish, program, run, wait_until};
use rustix::process::{Pid, Signal, kill_process};
use std::fs;
use std::io::{BufRead, BufReader};
use std::process::{Command, Stdio};

#[test]
fn the_network_that_is_made_first_is_the_jobs_own_with_its_loopback_up() {
    let code = "import os, socket\n\
        server = socket.create_server(('127.0.0.1', 0))\n\
        socket.create_connection(server.getsockname())\n\
        print(os.readlink('/proc/self/ns/net'), [line.split(':')[0].strip() for line in open('/proc/net/dev')][2:])";
    let answer = run(&["-c", code]);
    assert_eq!(answer.code, Some(0), "{answer:?}");
    let host = fs::read_link("/proc/self/ns/net").expect("a namespace");
    let (own, interfaces) = answer.stdout.trim().split_once(' ').expect("two words");
    assert_ne!(own, host.to_str().expect("text"));
    assert_eq!(interfaces, "['lo']");
}

#[test]
fn a_standard_stream_that_is_closed_is_nobody_elses() {
    for closed in ["0<&-", "2>&-", "0<&- 2>&-"] {
        let line = format!("exec \"$0\" run -- sh -c 'ls -l /proc/self/fd; echo done' {closed}");
        let mut shell = Command::new("sh");
        shell.arg("-c").arg(line).arg(program());
        shell.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let answer = finish(shell.spawn().expect("a shell starts"));
        assert_eq!(answer.code, Some(0), "{closed}: {answer:?}");
        assert!(
            answer.stdout.ends_with("done\n") && !answer.stdout.contains("net:["),
            "{closed}: {answer:?}"
        );
    }
}

#[test]
fn the_hosts_mounts_are_let_go_of_when_there_is_time() {
    let mut child = command(&["--", "sh", "-c", "echo ready; sleep 60"]).spawn().expect("the program starts");
    let mut line = String::new();
    BufReader::new(child.stdout.take().expect("a pipe")).read_line(&mut line).expect("a line");
    assert_eq!(line, "ready\n");
    let children = fs::read_to_string(format!("/proc/{0}/task/{0}/children", child.id())).expect("a list");
    let launcher = children.split_whitespace().next().expect("a launcher").to_owned();
    // Seen from here, its mounts have paths below its own root.
    let holds_host = || {
        let mounts = fs::read_to_string(format!("/proc/{launcher}/mountinfo")).expect("the launcher lives");
        assert!(mounts.contains(" /proc "), "{mounts}");
        mounts.contains(" /host ")
    };
    wait_until("the launcher has let go of the host's mounts", || !holds_host());
    kill_process(Pid::from_child(&child), Signal::TERM).expect("the program lives");
    child.wait().expect("the program ends");
}
