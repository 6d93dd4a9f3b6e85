//! `cofferdam image`: the image store, from the shell. One file a verb.

mod build_profile;
mod check;
mod contract;
mod import;
mod list;
mod progress;
mod pull;
mod rm;
mod show;
mod view;

pub(super) use contract::contract;

use super::{MakeBackend, remote};
use crate::args::ImageCommand;
use crate::exit::Failure;
use crate::host::state;
use cofferdam_images::Store;
use std::process::ExitCode;

pub(super) fn image(command: ImageCommand, backend: MakeBackend) -> Result<ExitCode, Failure> {
    match command {
        ImageCommand::Import(args) => import::import(&args),
        ImageCommand::Pull(args) => pull::pull(&args),
        ImageCommand::List(args) if args.remote => remote::image::list(args),
        ImageCommand::List(args) => list::list(&args),
        ImageCommand::Register(args) => remote::image::register(args),
        ImageCommand::Unregister(args) => remote::image::unregister(&args),
        ImageCommand::Show(args) => show::show(&args),
        ImageCommand::Rm(args) => rm::rm(&args),
        ImageCommand::Check(args) => check::check(&args, backend),
        ImageCommand::BuildProfile(args) => build_profile::build_profile(&args),
    }
}

fn store() -> Result<Store, Failure> {
    Ok(Store::at(std::path::absolute(state::images())?))
}
