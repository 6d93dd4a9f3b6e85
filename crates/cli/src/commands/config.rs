//! `cofferdam config`: whether the settings are right, and which are in effect.

use crate::args::ConfigCommand;
use crate::config;
use crate::exit::Failure;
use std::io::Write;
use std::path::PathBuf;
use std::process::ExitCode;

/// Something in the settings is wrong.
const WRONG: u8 = 1;

pub(super) fn config(command: &ConfigCommand) -> Result<ExitCode, Failure> {
    let (file, as_json) = match command {
        ConfigCommand::Check { file } => (file, None),
        ConfigCommand::Show { file, json } => (file, Some(*json)),
    };
    let file: Option<PathBuf> = file.clone().or_else(config::default_file);
    let loaded = match config::load(file.as_deref(), config::environment(), &[]) {
        Ok(loaded) => loaded,
        Err(errors) => return Err(Failure { code: WRONG, ..errors.into() }),
    };
    let text = match as_json {
        None => {
            let name = file.map_or_else(|| "the environment".to_owned(), |file| file.display().to_string());
            format!("{name} is right\n")
        }
        Some(false) => config::table(&loaded),
        Some(true) => serde_json::to_string_pretty(&config::json(&loaded))? + "\n",
    };
    std::io::stdout().write_all(text.as_bytes())?;
    Ok(ExitCode::SUCCESS)
}
