//! `cofferdam signing-key`: the keys that a service signs with, in its data folder.

use crate::args::{SigningKeyArgs, SigningKeyCommand};
use crate::exit::Failure;
use cofferdam_control::{rotate_signing_key, signing_key_list};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

pub(super) fn signing_key(args: &SigningKeyArgs) -> Result<ExitCode, Failure> {
    match &args.command {
        SigningKeyCommand::List(args) => {
            let list = signing_key_list(&folder(&args.data)?)?;
            println!("{}", serde_json::to_string(&list)?);
        }
        SigningKeyCommand::Rotate(args) => {
            let rotated = rotate_signing_key(&folder(&args.data)?, args.leaked)?;
            if args.json {
                println!("{}", serde_json::to_string(&rotated)?);
                return Ok(ExitCode::SUCCESS);
            }
            println!("{} signs from now on", rotated.current);
            if let Some(old) = rotated.retired {
                let what = match args.leaked {
                    true => "is given up: nothing that it has signed stands; ask for receipts and heads anew",
                    false => "is retired: what it has signed still verifies",
                };
                println!("{old} {what}");
            }
            println!("whoever checks signatures needs the keys anew, from GET /v1/signing-keys");
        }
    }
    Ok(ExitCode::SUCCESS)
}

/// The folder of the keys, which a service makes at its first start. A wrong name must not make another one.
fn folder(data: &Path) -> Result<PathBuf, Failure> {
    let folder = data.join("signing");
    match folder.is_dir() {
        true => Ok(folder),
        false => {
            let why = "is not there; the first start of cofferdam serve makes it";
            Err(Failure::new(format!("--data: {} {why}", folder.display())))
        }
    }
}
