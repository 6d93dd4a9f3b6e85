//! The real program, as far as it goes without a sandbox: bad input is one line and exit 125, help is help.

use std::path::Path;
use std::process::{Command, Output, Stdio};

fn cofferdam(words: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_cofferdam"));
    command.args(words).stdin(Stdio::null()).env_remove("NO_COLOR").output().expect("the program starts")
}

#[test]
fn bad_input_is_one_line_and_exit_125() {
    let program = env!("CARGO_BIN_EXE_cofferdam");
    let inside_a_file = format!("{program}/x.py");
    let lines: [&[&str]; 27] = [
        &[],
        &["fly"],
        &["run"],
        &["run", "--no-such-option", "--", "true"],
        &["run", "--memory"],
        &["run", "--memory", "0", "--", "true"],
        &["run", "--memory", "-1", "--", "true"],
        &["run", "--memory", "1e9", "--", "true"],
        &["run", "--disk", "0", "--", "true"],
        &["run", "--cpus", "0", "--", "true"],
        &["run", "--cpus=-1", "--", "true"],
        &["run", "--pids", "0", "--", "true"],
        &["run", "--timeout", "0s", "--", "true"],
        &["run", "--grace", "31s", "--", "true"],
        &["run", "--network", "open-sesame", "--", "true"],
        &["run", "--isolation", "none", "--", "true"],
        &["run", "--env", "NAME", "--", "true"],
        &["run", "--workdir", "../up", "--", "true"],
        &["run", "--workdir", "/proc/1", "--", "true"],
        &["run", "--rootfs", "/no/such/folder", "--", "true"],
        &["run", "--file", "/no/such/file", "--", "true"],
        &["run", "--file", "/", "--", "true"],
        &["run", "--artifacts-out", program, "--", "true"],
        &["run", "--lang", "two\nlines", "-c", "1"],
        &["run", "/no/such/script.py"],
        &["run", &inside_a_file],
        &["completions", "tcsh"],
    ];
    for words in lines {
        let Output { status, stdout, stderr } = cofferdam(words);
        let said = String::from_utf8(stderr).unwrap();
        assert_eq!(status.code(), Some(125), "{words:?}: {said}");
        assert!(stdout.is_empty(), "{words:?}");
        assert!(said.starts_with("cofferdam: ") && said.lines().count() == 1, "{words:?}: {said}");
    }
}

/// Right settings are said to be right; wrong ones are all named, and the exit says so.
#[test]
fn settings_are_checked_without_a_server() {
    let file = std::env::temp_dir().join(format!("cofferdam-check-{}.toml", std::process::id()));
    let check = |text: &str, variable: &str| {
        std::fs::write(&file, text).expect("a file");
        let mut command = Command::new(env!("CARGO_BIN_EXE_cofferdam"));
        command.args(["config", "check"]).arg(&file).env("COFFERDAM_LIMITS_CPUS", variable);
        let Output { status, stdout, stderr } = command.output().expect("the program starts");
        (status.code(), String::from_utf8(stdout).expect("text"), String::from_utf8(stderr).expect("text"))
    };
    let name = file.display().to_string();
    let (code, said, wrong) = check("[limits]\npids = 20\n", "2");
    assert_eq!((code, said.as_str(), wrong.as_str()), (Some(0), format!("{name} is right\n").as_str(), ""));
    let (code, said, wrong) = check("[limits]\npids = \"many\"\nmemroy = 4\n", "none");
    assert_eq!((code, said.as_str()), (Some(1), ""));
    let named = [
        format!("{name}:2: limits.pids"),
        format!("{name}:3: limits.memroy"),
        "COFFERDAM_LIMITS_CPUS".into(),
    ];
    for part in named {
        assert!(wrong.contains(&part), "{part} is not in {wrong}");
    }
    std::fs::remove_file(&file).expect("it was there");
}

#[test]
fn an_argument_that_is_not_text_is_bad_input() {
    use std::os::unix::ffi::OsStrExt;
    let mut command = Command::new(env!("CARGO_BIN_EXE_cofferdam"));
    let output = command.args(["run", "--"]).arg(std::ffi::OsStr::from_bytes(b"\xff")).output().unwrap();
    assert_eq!(output.status.code(), Some(125));
    assert_eq!(String::from_utf8(output.stderr).unwrap().lines().count(), 1);
}

#[test]
fn help_and_version_are_answers_without_colours() {
    for words in [&["--help"][..], &["run", "--help"], &["doctor", "--help"], &["--version"]] {
        let Output { status, stdout, stderr } = cofferdam(words);
        assert!(status.success() && stderr.is_empty(), "{words:?}");
        assert!(!stdout.is_empty() && !stdout.contains(&0x1b), "{words:?}");
    }
    let help = String::from_utf8(cofferdam(&["run", "--help"]).stdout).unwrap();
    assert!(help.contains("Examples:") && help.contains("124"));
}

#[test]
fn completions_are_printed_for_every_shell() {
    for shell in ["bash", "zsh", "fish"] {
        assert!(cofferdam(&["completions", shell]).stdout.len() > 1000, "{shell}");
    }
}

#[test]
fn a_folder_for_artifacts_is_not_left_behind() {
    let folder = std::env::temp_dir().join(format!("cofferdam-left-{}", std::process::id()));
    let words =
        ["run", "--artifacts-out", folder.to_str().unwrap(), "--rootfs", "/no/such/folder", "--", "true"];
    assert_eq!(cofferdam(&words).status.code(), Some(125));
    assert!(!Path::new(&folder).exists());
}
