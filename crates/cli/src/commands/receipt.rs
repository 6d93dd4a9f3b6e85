//! `cofferdam receipt`: what a service says of a job, checked without it.

use super::verdict::{Verdict, line, read_envelope, read_keys};
use crate::args::{ReceiptArgs, ReceiptCommand, ReceiptVerifyArgs};
use crate::exit::Failure;
use cofferdam_proof::{Digest, Form, Hasher, Proof, Receipt, StepOf, StreamOut};
use serde::Serialize;
use serde_json::json;
use std::fs::File;
use std::io::Read;
use std::path::Path;
use std::process::ExitCode;

/// One thing that was looked at.
#[derive(Debug, PartialEq, Eq, Serialize)]
struct Check {
    name: &'static str,
    verdict: Verdict,
    detail: String,
}

impl Check {
    fn compare(name: &'static str, is_same: bool, found: impl ToString) -> Self {
        let verdict = if is_same { Verdict::Proven } else { Verdict::Broken };
        Self { name, verdict, detail: found.to_string() }
    }
}

pub(super) fn receipt(args: &ReceiptArgs) -> Result<ExitCode, Failure> {
    match &args.command {
        ReceiptCommand::Verify(args) => verify(args),
    }
}

fn verify(args: &ReceiptVerifyArgs) -> Result<ExitCode, Failure> {
    let keys = read_keys(args.keys.as_deref())?;
    let envelope = read_envelope(&args.file)?;
    let (receipt, checks) = match Receipt::open(&envelope, keys.as_ref()) {
        Ok((receipt, proof)) => {
            let mut checks = vec![signature(&proof)];
            checks.extend(content(args, &receipt)?);
            (Some(receipt), checks)
        }
        Err(error) => (None, vec![Check::compare("signature", false, error)]),
    };
    let verdict = checks.iter().map(|check| check.verdict).max().unwrap_or(Verdict::Unproven);
    match args.json {
        true => println!("{}", json!({"verdict": verdict, "checks": checks, "receipt": receipt})),
        false => lines(receipt.as_ref(), &checks).iter().for_each(|text| println!("{}", line(text))),
    }
    Ok(verdict.into())
}

fn signature(proof: &Proof) -> Check {
    match proof {
        Proof::Signed { keyid } => Check::compare("signature", true, format!("by {keyid}")),
        Proof::Unchecked => {
            let detail = "not checked: it may be anybody's (give --keys)".to_owned();
            Check { name: "signature", verdict: Verdict::Unproven, detail }
        }
    }
}

/// What the receipt says, beside what was expected of it.
fn content(args: &ReceiptVerifyArgs, receipt: &Receipt) -> Result<Vec<Check>, Failure> {
    let mut checks = Vec::new();
    for (name, expected, found) in
        [("job", &args.job, &receipt.job_id), ("tenant", &args.tenant, &receipt.tenant)]
    {
        checks.extend(
            expected.iter().map(|expected| Check::compare(name, expected == found, format!("it is {found}"))),
        );
    }
    if let Some(expected) = &args.step {
        let (is_same, detail) = match &receipt.step {
            Some(StepOf { id, number, .. }) => {
                (expected == id || *expected == number.to_string(), format!("it is {number}, {id}"))
            }
            None => (false, "it is about a job, which has no steps".to_owned()),
        };
        checks.push(Check::compare("step", is_same, detail));
    }
    if let Some(path) = &args.code {
        let found = digest(path, None)?;
        let is_text = receipt.work.form != Form::Argv;
        let detail = match is_text {
            true => format!("it ran {}, the file is {found}", receipt.work.sha256),
            false => "it ran a command of words, which no file has".to_owned(),
        };
        checks.push(Check::compare("code", is_text && receipt.work.sha256 == found, detail));
    }
    let streams = [
        ("stdout", &args.stdout, &receipt.outputs.stdout),
        ("stderr", &args.stderr, &receipt.outputs.stderr),
    ];
    for (name, path, stream) in streams {
        let Some(path) = path else { continue };
        checks.push(compare_stream(name, path, stream.as_ref())?);
    }
    Ok(checks)
}

fn compare_stream(name: &'static str, path: &Path, stream: Option<&StreamOut>) -> Result<Check, Failure> {
    let Some(StreamOut { sha256, size_bytes, truncated }) = stream else {
        return Ok(Check::compare(name, false, "the receipt says nothing of it"));
    };
    // Of a stream that was cut, the receipt knows what was kept: the beginning.
    let found = digest(path, truncated.then_some(*size_bytes))?;
    let kept = if *truncated { format!(" (its first {size_bytes} bytes)") } else { String::new() };
    Ok(Check::compare(name, *sha256 == found, format!("it wrote {sha256}{kept}, the file is {found}")))
}

/// The digest of a file, or of its beginning.
fn digest(path: &Path, most: Option<u64>) -> Result<Digest, Failure> {
    let failed = |error| Failure::new(format!("{}: {error}", path.display()));
    let mut file = File::open(path).map_err(failed)?.take(most.unwrap_or(u64::MAX));
    let mut hasher = Hasher::default();
    let mut buffer = vec![0; 64 << 10];
    loop {
        match file.read(&mut buffer).map_err(failed)? {
            0 => return Ok(hasher.finish()),
            read => hasher.update(&buffer[..read]),
        }
    }
}

fn lines(receipt: Option<&Receipt>, checks: &[Check]) -> Vec<String> {
    let mut lines = Vec::new();
    if let Some(receipt) = receipt {
        let Receipt { job_id, step, tenant, state, outcome, finished_at, .. } = receipt;
        let step =
            step.as_ref().map(|step| format!(", step {} ({})", step.number, step.id)).unwrap_or_default();
        lines.push(format!("{job_id}{step} of {tenant}: {state}, {outcome}, at {finished_at}"));
    }
    lines.extend(checks.iter().map(|Check { name, verdict, detail }| {
        let word = match verdict {
            Verdict::Proven => "good",
            Verdict::Unproven => "unproven",
            Verdict::Broken => "broken",
        };
        format!("{word}: {name}: {detail}")
    }));
    lines
}
