//! One file a command. Each gets its arguments and the parts that only `main` can name.

mod audit;
mod backup;
mod certificate;
mod completions;
mod config;
mod control;
mod data_folder;
mod desk;
mod doctor;
mod elsewhere;
mod image;
mod local_images;
mod local_sessions;
mod local_worker;
mod master_key;
mod observing;
mod receipt;
mod remote;
mod restore;
mod roles;
mod run;
mod serve;
mod shred_check;
mod signing_key;
mod store;
mod usage;
mod verdict;
mod worker;

use crate::args::Command;
use crate::backends::Choice;
use cofferdam_backend::{Backend, BackendError};
use cofferdam_core::Check;
use std::ffi::OsString;
use std::process::ExitCode;
use std::sync::Arc;

/// Makes the backend that was chosen; called at most once, inside the async runtime.
pub(crate) type MakeBackend = Box<dyn FnOnce(Choice) -> Result<Arc<dyn Backend>, BackendError>>;

/// What the commands are made of; chosen in `main`.
pub(crate) struct Parts {
    pub(crate) backend: MakeBackend,
    pub(crate) checks: fn() -> Vec<Check>,
}

pub(crate) fn dispatch(line: impl IntoIterator<Item = OsString>, parts: Parts) -> ExitCode {
    let command = match crate::args::parse(line.into_iter().collect()) {
        Ok(command) => command,
        Err(error) => return usage::answer(&error),
    };
    let done = match command {
        Command::Run(args) => run::run(*args, parts.backend),
        Command::Serve(args) => serve::serve(&args, parts.backend),
        Command::Backup(args) => backup::backup(&args),
        Command::Restore(args) => restore::restore(&args),
        Command::Store(args) => store::store(&args),
        Command::Config(args) => config::config(&args.command),
        Command::Control(args) => control::control(&args),
        Command::Worker(args) => worker::worker(&args, parts.backend),
        Command::Audit(args) => audit::audit(&args),
        Command::Receipt(args) => receipt::receipt(&args),
        Command::SigningKey(args) => signing_key::signing_key(&args),
        Command::MasterKey { command } => master_key::master_key(&command),
        Command::Job { command } => remote::job::job(command),
        Command::Session { command } => remote::session::session(command),
        Command::Snapshot { command } => remote::snapshot::snapshot(command),
        Command::Secret { command } => remote::secret::secret(command),
        Command::Key { command } => remote::key::key(command),
        Command::Tenant { command } => remote::tenant::tenant(command),
        Command::Image { command } => image::image(command, parts.backend),
        Command::Doctor(args) => doctor::doctor(&args, &(parts.checks)()),
        Command::Completions(args) => completions::completions(&args),
    };
    done.unwrap_or_else(crate::exit::Failure::report)
}
