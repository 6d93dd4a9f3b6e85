//! Files into a sandbox, and artifacts out of it.

use crate::support::{Folder, run};
use std::fs;
use std::os::unix::fs::PermissionsExt;

#[test]
fn files_are_where_they_were_put() {
    let folder = Folder::new();
    let data = folder.file("data.txt", "some data");
    let program = folder.file("program.sh", "#!/bin/sh\necho \"$0 $1\"\n");
    fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).expect("its mode can be set");
    let (renamed, below) = (format!("{data}:in/other.txt"), format!("{data}:/tmp/deep/"));
    let script = "stat -c '%n %a %U' data.txt program.sh; cat data.txt in/other.txt /tmp/deep/data.txt; ./program.sh x";
    let answer = run(&["-f", &data, "-f", &renamed, "-f", &below, "-f", &program, "--", "sh", "-c", script]);
    let expected =
        "data.txt 644 sandbox\nprogram.sh 755 sandbox\nsome datasome datasome data./program.sh x\n";
    assert_eq!((answer.stdout.as_str(), answer.stderr.as_str()), (expected, ""));
}

#[test]
fn a_file_cannot_go_where_nothing_is_written() {
    let folder = Folder::new();
    let data = folder.file("data.txt", "some data");
    let answer = run(&["--file", &format!("{data}:/usr/x"), "--", "true"]);
    let line = "cofferdam: /usr/x could not be put into the sandbox: ";
    assert_eq!((answer.code, answer.stdout.as_str()), (Some(125), ""));
    assert!(answer.stderr.starts_with(line) && answer.stderr.lines().count() == 1, "{answer:?}");
}

#[test]
fn a_file_is_run_with_its_arguments() {
    let folder = Folder::new();
    let script = folder.file("script.py", "import sys; print(__file__, sys.argv[1:])");
    let answer = run(&[&script, "--json", "-x"]);
    assert_eq!(answer.stdout, "/workspace/script.py ['--json', '-x']\n", "{answer:?}");
}

#[test]
fn artifacts_are_taken_and_the_rest_is_listed() {
    let folder = Folder::new();
    let out = folder.path("out");
    let secret = folder.file("secret.txt", "not for the sandbox");
    let code = "import os, sys\n\
                os.chdir(os.environ['CYNODE_ARTIFACTS_DIR'])\n\
                open('plain.txt', 'w').write('plain')\n\
                os.makedirs('sub/folder'); open('sub/folder/deep.txt', 'w').write('deep')\n\
                os.symlink(sys.argv[1], 'link'); os.symlink('/', 'sub/root')\n\
                os.mkfifo('fifo')\n\
                import socket; socket.socket(socket.AF_UNIX).bind('socket')\n\
                open('closed', 'w').write('x'); os.chmod('closed', 0)";
    let answer = run(&["--json", "--artifacts-out", &out, "-c", code, &secret]);
    assert_eq!(answer.code, Some(0), "{answer:?}");
    let result = answer.json();
    let taken = serde_json::json!([
        { "path": "plain.txt", "size_bytes": 5 },
        { "path": "sub/folder/deep.txt", "size_bytes": 4 },
    ]);
    assert_eq!(result["artifacts"], taken);
    let reasons: Vec<_> = result["artifacts_skipped"].as_array().expect("a list").iter().collect();
    let skipped: Vec<_> = reasons.iter().map(|skipped| skipped["path"].as_str().expect("text")).collect();
    assert_eq!(skipped, ["closed", "fifo", "link", "socket", "sub/root"], "{reasons:?}");
    assert_eq!(fs::read_to_string(folder.0.join("out/plain.txt")).expect("it is there"), "plain");
    assert_eq!(fs::read_to_string(folder.0.join("out/sub/folder/deep.txt")).expect("it is there"), "deep");
    let mut names: Vec<_> = fs::read_dir(&out).expect("a folder").flatten().map(|e| e.file_name()).collect();
    names.sort();
    assert_eq!(names, ["plain.txt", "sub"]);
}

#[test]
fn what_was_not_taken_is_said_without_json() {
    let folder = Folder::new();
    let answer =
        run(&["--artifacts-out", &folder.path("out"), "--", "ln", "-s", "/etc/passwd", ".artifacts/link"]);
    answer.says(0, "artifact \"link\" was not taken: it is a link");
}

#[test]
fn artifacts_never_write_through_what_is_there() {
    let folder = Folder::new();
    let victim = folder.file("victim.txt", "untouched");
    let out = folder.path("out");
    fs::create_dir(&out).expect("a folder can be made");
    std::os::unix::fs::symlink(&victim, folder.0.join("out/result.txt")).expect("a link can be made");
    fs::write(folder.0.join("out/other.txt"), "other").expect("a file can be written");
    let answer = run(&["-o", &out, "--", "sh", "-c", "echo new > .artifacts/result.txt"]);
    assert_eq!(answer.code, Some(0), "{answer:?}");
    assert_eq!(fs::read_to_string(victim).expect("it is there"), "untouched");
    assert_eq!(fs::read_to_string(folder.0.join("out/result.txt")).expect("it is there"), "new\n");
    assert_eq!(fs::read_to_string(folder.0.join("out/other.txt")).expect("it is there"), "other");
}
