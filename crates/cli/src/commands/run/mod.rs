//! `cofferdam run`: one job, from its words to its exit code.
//!
//! `request` understands the words without touching the machine, `open` opens what they name, `attend` runs
//! the job and listens to signals meanwhile, `report` says how it ended.

mod attend;
mod open;
mod report;
mod request;
mod work;

pub(super) use crate::host::files::FileSource;
pub(super) use request::{parse_files as read_files, variable as read_variable};
pub(super) use work::{Words, parse as parse_words};

use super::MakeBackend;
use crate::args::RunArgs;
use crate::exit::Failure;
use crate::host::live::sink;
use open::ArtifactsOut;
use request::RunRequest;
use std::convert::Infallible;
use std::process::ExitCode;

pub(super) fn run(args: RunArgs, backend: MakeBackend) -> Result<ExitCode, Failure> {
    let request = RunRequest::parse(args)?;
    let choice = request.backend.clone();
    let opened = open::open(request)?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let (stdout, stderr) = (sink(std::io::stdout())?, sink(std::io::stderr())?);
    let attended = async {
        match backend(choice) {
            Ok(backend) => {
                let code = attend::attend(&*backend, opened, stdout, stderr).await?;
                // At once, with all that is held: a thread may be waiting for input that never comes, and nothing is
                // left to be tidied up here.
                std::process::exit(i32::from(code))
            }
            Err(error) => {
                opened.artifacts_out.iter().for_each(ArtifactsOut::take_back);
                Err(error.into())
            }
        }
    };
    let ended: Result<Infallible, Failure> = runtime.block_on(Box::pin(attended));
    runtime.shutdown_background();
    ended.map(|never| match never {})
}
