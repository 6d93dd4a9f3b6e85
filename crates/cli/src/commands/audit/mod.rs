//! `cofferdam audit`: a tenant's chain, taken out and checked.

mod export;
mod verify;

use crate::args::{AuditArgs, AuditCommand};
use crate::exit::Failure;
use std::process::ExitCode;

pub(super) fn audit(args: &AuditArgs) -> Result<ExitCode, Failure> {
    match &args.command {
        AuditCommand::Export(args) => export::export(args),
        AuditCommand::Verify(args) => verify::verify(args),
    }
}
