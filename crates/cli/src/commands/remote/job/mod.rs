//! `cofferdam job`: jobs of a service.

mod artifacts;
mod attend;
mod inputs;
mod list;
mod logs;
mod one;
mod project;
mod project_page;
mod request;
mod run;

use crate::args::JobCommand;
use crate::exit::Failure;
use cofferdam_core::JobKind;
use std::process::ExitCode;

pub(in crate::commands) fn job(command: JobCommand) -> Result<ExitCode, Failure> {
    match command {
        JobCommand::Run(args) => run::run(&args),
        JobCommand::Test(args) => project::run(&args, JobKind::Test),
        JobCommand::Build(args) => project::run(&args, JobKind::Build),
        JobCommand::List(args) => list::list(&args),
        JobCommand::Show(args) => one::show(&args),
        JobCommand::Cancel(args) => one::cancel(&args),
        JobCommand::Logs(args) => logs::logs(&args),
        JobCommand::Receipt(args) => one::receipt(&args),
        JobCommand::Artifacts(args) => artifacts::artifacts(&args),
        JobCommand::Delete(args) => one::delete(&args),
    }
}
