//! `cofferdam completions`: what a shell needs to know to complete our words.

use crate::args::{Cli, CompletionsArgs};
use crate::exit::Failure;
use clap::CommandFactory;
use clap_complete::Shell;
use cofferdam_core::InvalidValue;
use std::io::Write;
use std::process::ExitCode;

pub(super) fn completions(args: &CompletionsArgs) -> Result<ExitCode, Failure> {
    let shell = shell(&args.shell)?;
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut Cli::command(), "cofferdam", &mut script);
    std::io::stdout().write_all(&script)?;
    Ok(ExitCode::SUCCESS)
}

fn shell(name: &str) -> Result<Shell, InvalidValue> {
    match name {
        "bash" => Ok(Shell::Bash),
        "zsh" => Ok(Shell::Zsh),
        "fish" => Ok(Shell::Fish),
        _ => Err(InvalidValue::new("shell", name, "it must be bash, zsh or fish")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_shell_gets_a_script_that_knows_our_options() {
        for name in ["bash", "zsh", "fish"] {
            let mut script = Vec::new();
            clap_complete::generate(shell(name).unwrap(), &mut Cli::command(), "cofferdam", &mut script);
            assert!(String::from_utf8(script).unwrap().contains("artifacts-out"), "{name}");
        }
        assert!(shell("tcsh").is_err());
    }
}
