//! Help has examples, and nothing that is printed as a table is wider than a terminal.

use cofferdam_project_tests::{binary, root, sources};
use std::process::{Command, Stdio};

const WIDTH: usize = 100;

fn print(words: &[&str]) -> String {
    let mut command = Command::new(binary::folder().join("cofferdam"));
    let output = command.args(words).stdin(Stdio::null()).output().expect("the program starts");
    String::from_utf8(output.stdout).expect("it prints text")
}

/// The names of the commands that a help lists.
fn listed(help: &str) -> Vec<String> {
    let list = help.split_once("Commands:\n").map_or("", |(_, list)| list);
    let lines = list.lines().take_while(|line| !line.trim().is_empty());
    lines.filter_map(|line| line.split_whitespace().next().map(str::to_owned)).collect()
}

/// Every command, and below it every command of its own, each as the words that name it.
fn subcommands() -> Vec<Vec<String>> {
    let mut found = Vec::new();
    for name in listed(&print(&["--help"])) {
        let below = listed(&help(std::slice::from_ref(&name)));
        found.push(vec![name.clone()]);
        found.extend(below.into_iter().map(|word| vec![name.clone(), word]));
    }
    found
}

fn help(command: &[String]) -> String {
    let words: Vec<&str> = command.iter().map(String::as_str).chain(["--help"]).collect();
    print(&words)
}

#[test]
fn the_help_of_every_subcommand_has_examples() {
    let commands = subcommands();
    let is_there = |words: &[&str]| commands.iter().any(|command| command == words);
    assert!(is_there(&["run"]) && is_there(&["job", "logs"]), "{commands:?}");
    let without: Vec<_> = commands.iter().filter(|command| !help(command).contains("Examples:")).collect();
    assert!(without.is_empty(), "no examples in the help of {without:?}");
}

#[test]
fn tables_fit_a_terminal() {
    let mut printed =
        vec![("doctor".to_owned(), print(&["doctor"])), ("--help".to_owned(), print(&["--help"]))];
    for command in subcommands() {
        printed.push((format!("{} --help", command.join(" ")), help(&command)));
    }
    let wide: Vec<String> = printed
        .iter()
        .flat_map(|(name, text)| text.lines().map(move |line| (name, line)))
        .filter(|(_, line)| line.chars().count() > WIDTH)
        .map(|(name, line)| format!("{name}: {line}"))
        .collect();
    assert!(wide.is_empty(), "wider than {WIDTH} columns:\n{}", wide.join("\n"));
}

#[test]
fn the_reference_has_every_option() {
    let reference = sources::text(&root().join("docs/reference.md")).expect("the reference is text");
    for command in subcommands() {
        let help = help(&command);
        let words =
            help.lines().filter(|line| line.trim_start().starts_with('-')).flat_map(str::split_whitespace);
        for option in words.filter(|word| word.starts_with("--")).map(|word| word.trim_end_matches(',')) {
            let command = command.join(" ");
            assert!(
                reference.contains(&format!("`{option}")),
                "docs/reference.md lacks {option} of {command}"
            );
        }
    }
}
