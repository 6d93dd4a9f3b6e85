//! Help and version are answers; everything else that the parser says is one line and exit 125.

use crate::exit::Failure;
use clap::error::ErrorKind;
use std::process::ExitCode;

pub(super) fn answer(error: &clap::Error) -> ExitCode {
    match error.kind() {
        ErrorKind::DisplayHelp | ErrorKind::DisplayVersion => match error.print() {
            Ok(()) => ExitCode::SUCCESS,
            Err(error) => Failure::from(error).report(),
        },
        ErrorKind::MissingSubcommand | ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand => {
            Failure::new("no command was given; see cofferdam --help").report()
        }
        _ => Failure::new(in_one_line(&error.to_string())).report(),
    }
}

/// The parser's message without its usage text, its paragraphs put one after the other.
fn in_one_line(message: &str) -> String {
    let message = message.strip_prefix("error: ").unwrap_or(message);
    let is_extra = |line: &str| line.starts_with("Usage:") || line.starts_with("For more information");
    let lines = message.lines().take_while(|line| !is_extra(line)).map(str::trim);
    let told = lines.filter(|line| !line.is_empty()).collect::<Vec<_>>().join("; ").replace(":;", ":");
    format!("{told}; see --help")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::args::Cli;
    use clap::Parser;

    #[test]
    fn whatever_the_parser_says_fits_one_line() {
        let said = |line: &[&str]| in_one_line(&Cli::try_parse_from(line).unwrap_err().to_string());
        let unknown = said(&["cofferdam", "doctor", "--jsn"]);
        assert!(unknown.starts_with("unexpected argument '--jsn' found"), "{unknown}");
        for line in
            [&["cofferdam", "fly"][..], &["cofferdam", "run", "--memory"], &["cofferdam", "completions"]]
        {
            let said = said(line);
            assert!(!said.contains('\n') && !said.contains("Usage"), "{said}");
        }
    }
}
