//! `cofferdam session`: sandboxes of a service that stay.

mod copy;
mod exec;
mod follow;
mod keep;
mod list;
mod logs;
mod one;
mod shell;

use crate::args::SessionCommand;
use crate::exit::Failure;
use std::process::ExitCode;

pub(in crate::commands) fn session(command: SessionCommand) -> Result<ExitCode, Failure> {
    match command {
        SessionCommand::Create(args) => one::create(&args),
        SessionCommand::List(args) => list::list(&args),
        SessionCommand::Show(args) => one::show(&args),
        SessionCommand::Exec(args) => exec::exec(&args),
        SessionCommand::Copy(args) => copy::copy(&args),
        SessionCommand::Shell(args) => shell::shell(&args),
        SessionCommand::Logs(args) => logs::logs(&args),
        SessionCommand::Receipt(args) => logs::receipt(&args),
        SessionCommand::Extend(args) => one::extend(&args),
        SessionCommand::Pause(args) => keep::pause(&args),
        SessionCommand::Resume(args) => keep::resume(&args),
        SessionCommand::Fork(args) => keep::fork(&args),
        SessionCommand::Snapshot(args) => keep::snapshot(&args),
        SessionCommand::ShredCheck(args) => super::super::shred_check::shred_check(&args),
        SessionCommand::Delete(args) => one::delete(&args),
    }
}
