//! The rules of `run`'s words, one table each.

use super::*;
use cofferdam_core::Disk;
use std::time::Duration;

fn command() -> RunArgs {
    RunArgs { command: vec!["true".to_owned()], ..RunArgs::default() }
}

fn text(value: &str) -> Option<String> {
    Some(value.to_owned())
}

#[test]
fn without_options_everything_is_the_default() {
    let request = RunRequest::parse(command()).unwrap();
    assert_eq!(request.limits, Limits::default());
    assert_eq!((request.network, request.isolation), (NetworkPolicy::None, IsolationMode::Strict));
    assert_eq!(request.root, Root::Host);
    assert!(request.workdir.is_none() && request.env.is_empty() && request.files.is_empty());
}

#[test]
fn limits_are_understood_together() {
    let args = RunArgs {
        memory: text("64m"),
        cpus: text("0.5"),
        pids: text("7"),
        timeout: text("30s"),
        grace: text("500ms"),
        ..command()
    };
    let limits = RunRequest::parse(args).unwrap().limits;
    assert_eq!((limits.memory_bytes, limits.pids, limits.cpus.millis()), (64 << 20, 7, 500));
    assert_eq!((limits.timeout, limits.grace), (Duration::from_secs(30), Duration::from_millis(500)));
    assert_eq!(limits.disk, Disk::Memory { bytes: 32 << 20 });
    let args = RunArgs { disk: text("10g"), ..command() };
    assert_eq!(RunRequest::parse(args).unwrap().limits.disk, Disk::OnDisk { bytes: 10 << 30 });
}

#[test]
fn every_bad_value_is_named_with_its_option() {
    let wrong = [
        ("--memory", RunArgs { memory: text("0"), ..command() }),
        ("--memory", RunArgs { memory: text("-1"), ..command() }),
        ("memory", RunArgs { memory: text("1k"), ..command() }),
        ("--disk", RunArgs { disk: text("lots"), ..command() }),
        ("--cpus", RunArgs { cpus: text("0"), ..command() }),
        ("--cpus", RunArgs { cpus: text("-0.5"), ..command() }),
        ("pids", RunArgs { pids: text("0"), ..command() }),
        ("--pids", RunArgs { pids: text("-3"), ..command() }),
        ("--timeout", RunArgs { timeout: text("0"), ..command() }),
        ("--timeout", RunArgs { timeout: text("-5s"), ..command() }),
        ("grace", RunArgs { grace: text("31s"), ..command() }),
        ("--network", RunArgs { network: text("open-sesame"), ..command() }),
        ("--isolation", RunArgs { isolation: text("none"), ..command() }),
        ("--env", RunArgs { env: vec!["NAME".to_owned()], ..command() }),
        ("--env", RunArgs { env: vec!["=value".to_owned()], ..command() }),
        ("--workdir", RunArgs { workdir: text("../up"), ..command() }),
        ("--workdir", RunArgs { workdir: text("/workspace/../etc"), ..command() }),
        ("--workdir", RunArgs { workdir: text("/proc/self"), ..command() }),
        ("--file", RunArgs { file: vec!["a:../b".to_owned()], ..command() }),
        ("--file", RunArgs { file: vec![":b".to_owned()], ..command() }),
        ("--file", RunArgs { file: vec!["x/a".to_owned(), "y/a".to_owned()], ..command() }),
        ("--task-id", RunArgs { task_id: text("two words"), ..command() }),
    ];
    for (option, args) in wrong {
        let shown = format!("{args:?}");
        let error = RunRequest::parse(args).expect_err(&shown).message;
        assert!(error.starts_with(&format!("{option}: ")), "{error}");
        assert!(!error.contains('\n'), "{error}");
    }
}

#[test]
fn variables_keep_whatever_follows_the_first_equals_sign() {
    let args = RunArgs { env: vec!["A=b=c".to_owned(), "B=".to_owned()], ..command() };
    let env = RunRequest::parse(args).unwrap().env;
    assert_eq!(env, [("A".to_owned(), "b=c".to_owned()), ("B".to_owned(), String::new())]);
}

#[test]
fn files_go_where_they_are_told() {
    for (given, host, guest) in [
        ("dir/data.csv", "dir/data.csv", "/workspace/data.csv"),
        ("a:b", "a", "/workspace/b"),
        ("a:/tmp/b", "a", "/tmp/b"),
        ("dir/a:sub/", "dir/a", "/workspace/sub/a"),
        ("odd:name:place", "odd:name", "/workspace/place"),
    ] {
        let source = file_source(given).unwrap();
        assert_eq!((source.host, source.guest.as_str()), (PathBuf::from(host), guest), "{given}");
    }
}
