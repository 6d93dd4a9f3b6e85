//! The languages of this machine, as code and as files.

use crate::support::{Folder, run};

/// The name, code that prints its arguments, and the ending of a file.
const LANGUAGES: [(&str, &str, &str); 6] = [
    ("python", "import sys; print('hello', *sys.argv[1:])", "py"),
    ("node", "console.log('hello', ...process.argv.slice(-2))", "js"),
    ("bash", "echo hello \"$@\"", "bash"),
    ("sh", "echo hello \"$@\"", "sh"),
    ("perl", "print \"hello @ARGV\\n\"", "pl"),
    (
        "java",
        "public class Main { public static void main(String[] a) { System.out.println(\"hello \" + a[0] + \" \" + a[1]); } }",
        "java",
    ),
];

#[test]
fn code_runs_in_every_language() {
    for (name, code, _) in LANGUAGES {
        let answer = run(&["--lang", name, "-c", code, "--", "one", "-v"]);
        assert_eq!((answer.code, answer.stdout.as_str()), (Some(0), "hello one -v\n"), "{name}: {answer:?}");
    }
}

#[test]
fn files_run_by_their_ending() {
    let folder = Folder::new();
    for (name, code, ending) in LANGUAGES {
        let file = folder.file(&format!("program.{ending}"), code);
        let answer = run(&[&file, "one", "-v"]);
        assert_eq!((answer.code, answer.stdout.as_str()), (Some(0), "hello one -v\n"), "{name}: {answer:?}");
    }
}

#[test]
fn long_code_runs_as_well() {
    // The kernel takes no argument of more than 128 KiB, and this is close to it.
    let code = format!("{}print('end')", "# a comment\n".repeat(10_900));
    assert_eq!(run(&["-c", &code]).stdout, "end\n");
}

#[test]
fn a_missing_runtime_is_named_with_those_present() {
    let answer = run(&["--lang", "deno", "-c", "1"]);
    // What else a machine has is its own affair.
    let optional = [("ruby", false), ("perl", true), ("go", false), ("java", false), ("php", false)];
    let is_there = |name: &str| {
        ["/usr/local/bin", "/usr/bin"]
            .iter()
            .any(|folder| std::fs::symlink_metadata(format!("{folder}/{name}")).is_ok())
    };
    let others = optional.iter().filter(|(name, is_needed)| *is_needed || is_there(name));
    let others: String = others.map(|(name, _)| format!(", {name}")).collect();
    answer.says(
        127,
        &format!("the image has no deno, which deno needs; it has python, node, bash, sh{others}"),
    );
}

#[test]
fn python_finds_compiled_what_this_machine_has_compiled() {
    let answer = run(&["--", "/usr/bin/python3", "-v", "-c", "print(1)"]);
    assert_eq!((answer.code, answer.stdout.as_str()), (Some(0), "1\n"), "{answer:?}");
    let stale: Vec<_> = answer.stderr.lines().filter(|line| line.contains("bytecode is stale")).collect();
    assert!(stale.is_empty(), "{stale:?}");
}
