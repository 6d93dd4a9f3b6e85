//! Help has examples, and nothing that is printed as a table is wider than a terminal.

use cofferdam_project_tests::{binary, root, sources};
use std::process::{Command, Stdio};

const WIDTH: usize = 100;

fn print(words: &[&str]) -> String {
    let mut command = Command::new(binary::folder().join("cofferdam"));
    let output = command.args(words).stdin(Stdio::null()).output().expect("the program starts");
    String::from_utf8(output.stdout).expect("it prints text")
}

/// The subcommands, as the help lists them.
fn subcommands() -> Vec<String> {
    let help = print(&["--help"]);
    let (_, list) = help.split_once("Commands:\n").expect("help lists commands");
    let lines = list.lines().take_while(|line| !line.trim().is_empty());
    lines.filter_map(|line| line.split_whitespace().next().map(str::to_owned)).collect()
}

#[test]
fn the_help_of_every_subcommand_has_examples() {
    let commands = subcommands();
    assert!(commands.iter().any(|command| command == "run"), "{commands:?}");
    let without: Vec<_> =
        commands.iter().filter(|command| !print(&[command, "--help"]).contains("Examples:")).collect();
    assert!(without.is_empty(), "no examples in the help of {without:?}");
}

#[test]
fn tables_fit_a_terminal() {
    let mut printed =
        vec![("doctor".to_owned(), print(&["doctor"])), ("--help".to_owned(), print(&["--help"]))];
    for command in subcommands() {
        printed.push((format!("{command} --help"), print(&[&command, "--help"])));
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
        let help = print(&[&command, "--help"]);
        let words =
            help.lines().filter(|line| line.trim_start().starts_with('-')).flat_map(str::split_whitespace);
        for option in words.filter(|word| word.starts_with("--")).map(|word| word.trim_end_matches(',')) {
            assert!(
                reference.contains(&format!("`{option}")),
                "docs/reference.md lacks {option} of {command}"
            );
        }
    }
}
