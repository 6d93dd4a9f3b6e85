//! Nothing stays: not after bad input, not after a job, not after a job that tried to.

use crate::support::leftovers::{
    OwnProgram, loop_devices, orphaned_groups, remove_groups, slot_in, wait_until_free, wait_until_no_disk,
};
use crate::support::{Folder, command, finish, marker, run, wait_until};
use rustix::process::{Pid, Signal, kill_process};
use std::fs;
use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};

/// What nobody can run; each is one line, and some get as far as a sandbox.
fn bad_input(folder: &Folder) -> Vec<Vec<String>> {
    let file = folder.file("file.txt", "x");
    let folder = folder.0.to_str().expect("text").to_owned();
    let lines: [&[&str]; 30] = [
        &["--rootfs", "/no/such/folder", "--", "true"],
        &["--rootfs", &file, "--", "true"],
        &["--file", "/no/such/file", "--", "true"],
        &["--file", &folder, "--", "true"],
        &["--file", &format!("{file}:../x"), "--", "true"],
        &["--file", &format!("{file}:/proc/x"), "--", "true"],
        &["--file", &format!("{file}:/usr/x"), "--", "true"],
        &["--memory", "0", "--", "true"],
        &["--memory", "-1", "--", "true"],
        &["--memory", "lots", "--", "true"],
        &["--cpus", "0", "--", "true"],
        &["--pids", "0", "--", "true"],
        &["--pids", "-5", "--", "true"],
        &["--disk", "0", "--", "true"],
        &["--disk", "2t", "--", "true"],
        &["--disk", "5g", "--workspace-root", &file, "--", "true"],
        &["--disk", "5g", "--workspace-root", &format!("{file}/below"), "--", "true"],
        &["--disk", "5g", "--workspace-root", "/proc", "--", "true"],
        &["--disk", "5g", "--workspace-root", "/dev/shm", "--", "true"],
        &["--timeout", "0", "--", "true"],
        &["--grace", "1h", "--", "true"],
        &["--lang", "cobol", "-c", "1"],
        &["--network", "open", "--", "true"],
        &["--env", "NAME", "--", "true"],
        &["--workdir", "../up", "--", "true"],
        &["--workdir", "/workspace/../..", "--", "true"],
        &["--workdir", "/dev/shm", "--", "true"],
        &["--workdir", "/usr/made/up", "--", "true"],
        &["--artifacts-out", &file, "--", "true"],
        &["--task-id", "two words", "--", "true"],
    ];
    lines.iter().map(|words| words.iter().map(|word| (*word).to_owned()).collect()).collect()
}

#[test]
fn bad_input_is_one_line_and_leaves_nothing() {
    let (folder, program) = (Folder::new(), OwnProgram::new());
    let before = orphaned_groups();
    for words in bad_input(&folder) {
        let mut command = Command::new(program.path());
        command.arg("run").args(&words).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let answer = finish(command.spawn().expect("the program starts"));
        assert_eq!((answer.code, answer.stdout.as_str()), (Some(125), ""), "{words:?}: {answer:?}");
        let is_one_line = answer.stderr.starts_with("cofferdam: ") && answer.stderr.lines().count() == 1;
        assert!(is_one_line, "{words:?}: {answer:?}");
    }
    program.wait_until_gone();
    wait_until("no group is left", || orphaned_groups().is_subset(&before));
    let left: Vec<_> = fs::read_dir(&folder.0).expect("a folder").flatten().map(|e| e.file_name()).collect();
    assert_eq!(left, ["file.txt"]);
}

#[test]
fn a_job_leaves_nothing_however_it_ends() {
    let program = OwnProgram::new();
    let endings: [(&[&str], &str, i32); 5] = [
        (&[], "cat /proc/self/uid_map", 0),
        (&[], "cat /proc/self/uid_map; exit 3", 3),
        (&[], "cat /proc/self/uid_map; kill -9 $$", 137),
        (&["--timeout", "500ms", "--grace", "100ms"], "cat /proc/self/uid_map; exec sleep 100", 124),
        (&["--memory", "32m"], "cat /proc/self/uid_map; exec python3 -c 'bytearray(99 << 20)'", 137),
    ];
    for (options, script, code) in endings {
        let mut command = Command::new(program.path());
        command.arg("run").args(options).args(["--", "sh", "-c", script]);
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let answer = finish(command.spawn().expect("the program starts"));
        assert_eq!(answer.code, Some(code), "{script}: {answer:?}");
        wait_until_free(slot_in(&answer.stdout));
    }
    program.wait_until_gone();
}

#[test]
fn a_disk_is_gone_with_its_job_however_it_ends() {
    let (program, root) = (OwnProgram::new(), Folder::on_disk());
    let dirty = "dd if=/dev/zero of=big bs=1M count=100 2> /dev/null";
    let endings: [(&[&str], &str, i32); 4] = [
        (&[], "exit 3", 3),
        (&[], "kill -9 $$", 137),
        (&["--timeout", "1s", "--grace", "100ms"], "trap '' TERM; sleep 100", 124),
        (&["--memory", "32m"], "exec python3 -c 'bytearray(99 << 20)'", 137),
    ];
    for (options, script, code) in endings {
        let mut command = Command::new(program.path());
        command.args(["run", "--disk", "2g", "--workspace-root", &root.path("")]).args(options);
        command.args(["--", "sh", "-c", &format!("{dirty}; {script}")]);
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let answer = finish(command.spawn().expect("the program starts"));
        assert_eq!(answer.code, Some(code), "{script}: {answer:?}");
        wait_until_no_disk(&root.0);
    }
    program.wait_until_gone();
}

/// Whether a process of this machine has a word among its arguments.
fn runs_with(word: &str) -> bool {
    let processes = fs::read_dir("/proc").expect("/proc can be listed").flatten();
    processes.filter_map(|entry| fs::read(entry.path().join("cmdline")).ok()).any(|line| {
        // The arguments of this test's own children hold it as a part of theirs.
        line.split(|byte| *byte == 0).any(|argument| argument == word.as_bytes())
    })
}

#[test]
fn background_processes_go_with_the_job() {
    let word = marker("background");
    let script = format!(
        "import subprocess, sys, os, signal\n\
         word = '{word}'\n\
         quiet = dict(stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)\n\
         stay = 'import signal, time; signal.pthread_sigmask(signal.SIG_BLOCK, range(1, 32)); time.sleep(1000)'\n\
         subprocess.Popen([sys.executable, '-c', stay, word], **quiet)\n\
         subprocess.Popen([sys.executable, '-c', stay, word], start_new_session=True, **quiet)\n\
         subprocess.Popen(['sh', '-c', '(setsid sleep 1000 ' + word + ' &) &'], **quiet)\n\
         print(open('/proc/self/uid_map').read())"
    );
    let answer = run(&["-c", &script]);
    assert_eq!(answer.code, Some(0), "{answer:?}");
    wait_until("no background process is left", || !runs_with(&word));
    wait_until_free(slot_in(&answer.stdout));
}

#[test]
fn a_background_process_that_holds_stdout_does_not_hold_the_job() {
    let word = marker("holder");
    let script = "sleep 1000 & echo started";
    let answer = run(&["--json", "--", "sh", "-c", script, &word]);
    let result = answer.json();
    assert_eq!((&result["stdout"], &result["exit_code"]), (&"started\n".into(), &0.into()));
    assert!(result["duration_ms"].as_u64().expect("a number") < 30_000);
}

#[test]
fn killing_the_program_ends_its_sandbox() {
    let program = OwnProgram::new();
    let mut command = Command::new(program.path());
    command.args(["run", "--", "sh", "-c", "cat /proc/self/uid_map; exec sleep 1000"]);
    let mut child =
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null()).spawn().expect("it starts");
    let mut stdout = BufReader::new(child.stdout.take().expect("a pipe"));
    let mut line = String::new();
    stdout.read_line(&mut line).expect("its output can be read");
    child.kill().expect("it can be killed");
    child.wait().expect("it ends");
    program.wait_until_gone();
    wait_until_free(slot_in(&line));
}

/// Starts a job with a disk, and returns when it runs and the disk is in use.
fn job_on_disk(program: &OwnProgram, root: &Folder) -> Child {
    let mut command = Command::new(program.path());
    command.args(["run", "--disk", "2g", "--workspace-root", &root.path("")]);
    command.args(["--", "sh", "-c", "dd if=/dev/zero of=big bs=1M count=100; echo; exec sleep 1000"]);
    let command = command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null());
    let mut child = command.spawn().expect("it starts");
    let mut line = String::new();
    BufReader::new(child.stdout.take().expect("a pipe")).read_line(&mut line).expect("a line");
    assert_eq!(loop_devices(&root.0).len(), 1);
    assert_eq!(fs::read_dir(&root.0).expect("a folder").count(), 0, "the image has a name");
    child
}

#[test]
fn killing_the_program_leaves_nothing_of_its_disk() {
    let (program, root) = (OwnProgram::new(), Folder::on_disk());
    let mut child = job_on_disk(&program, &root);
    child.kill().expect("it can be killed");
    child.wait().expect("it ends");
    program.wait_until_gone();
    wait_until_no_disk(&root.0);
}

#[test]
fn killing_program_and_launcher_leaves_nothing_of_its_disk() {
    let (program, root) = (OwnProgram::new(), Folder::on_disk());
    let mut child = job_on_disk(&program, &root);
    let launcher = children(child.id());
    child.kill().expect("it can be killed");
    for pid in launcher {
        // It may be gone already: it ends with the program.
        let _ = kill_process(Pid::from_raw(pid).expect("a number"), Signal::KILL);
    }
    child.wait().expect("it ends");
    program.wait_until_gone();
    wait_until_no_disk(&root.0);
}

/// The processes whose parent is this one.
fn children(parent: u32) -> Vec<i32> {
    let wanted = format!("PPid:\t{parent}\n");
    let processes = fs::read_dir("/proc").expect("/proc can be listed").flatten();
    let is_child = |path: &std::path::Path| {
        fs::read_to_string(path.join("status")).is_ok_and(|status| status.contains(&wanted))
    };
    let found = processes.filter(|entry| is_child(&entry.path()));
    found.filter_map(|entry| entry.file_name().to_str()?.parse().ok()).collect()
}

/// Nobody removes the group of a sandbox whose launcher was killed until its range is used again; other tests
/// count groups, so this one removes it.
struct Abandoned {
    program: Option<Pid>,
    slot: u32,
}

impl Drop for Abandoned {
    fn drop(&mut self) {
        // Where the test failed, the program still runs, and the sandbox with it.
        if let Some(program) = self.program {
            let _ = kill_process(program, Signal::KILL);
        }
        remove_groups(self.slot);
    }
}

#[test]
fn killing_the_launcher_ends_its_sandbox() {
    let word = marker("orphan");
    let script = "cat /proc/self/uid_map; sleep 1000";
    let mut child =
        command(&["--timeout", "30s", "--", "sh", "-c", script, &word]).spawn().expect("it starts");
    let mut line = String::new();
    let mut stdout = BufReader::new(child.stdout.take().expect("a pipe"));
    stdout.read_line(&mut line).expect("its output can be read");
    let mut abandoned = Abandoned { program: Some(Pid::from_child(&child)), slot: slot_in(&line) };
    let launcher = children(child.id());
    assert_eq!(launcher.len(), 1, "the launcher is its only child");
    let launcher = Pid::from_raw(launcher[0]).expect("a number");
    kill_process(launcher, Signal::KILL).expect("it can be killed");
    wait_until("the sandbox's process is gone", || !runs_with(&word));
    abandoned.program = None;
    finish(child).says(125, "lost: the sandbox ended before the job did");
}
