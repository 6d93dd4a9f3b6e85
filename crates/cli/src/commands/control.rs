//! `cofferdam control`: the API and the queue, for workers in other processes.

use super::local_worker::RequestChecker;
use super::{roles, serve};
use crate::args::ControlArgs;
use crate::exit::Failure;
use cofferdam_control::Workers;
use cofferdam_remote::HttpWorkers;
use std::process::ExitCode;
use std::sync::Arc;

pub(super) fn control(args: &ControlArgs) -> Result<ExitCode, Failure> {
    let authorities =
        args.worker_ca.as_deref().map(|path| roles::read_pem("--worker-ca", path)).transpose()?;
    serve::run("control", &args.service, None, async |_, folder| {
        let tokens = folder.service_tokens(args.service_token_file.as_deref())?;
        let remote = Some(Arc::new(HttpWorkers::new(&tokens, authorities.as_deref())?) as _);
        Ok((Workers { checker: Arc::new(RequestChecker::default()), local: None, remote }, Some(tokens)))
    })
}
