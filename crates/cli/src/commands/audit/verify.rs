//! `cofferdam audit verify`: a chain is checked line by line, so it may be larger than memory.

use crate::args::AuditVerifyArgs;
use crate::commands::verdict::{Verdict, line, read_envelope, read_keys};
use crate::exit::Failure;
use cofferdam_proof::{
    ChainCheck, ChainReport, Checkpoint, ExportHeader, Head, KeyList, Proof, ProofError, Tail, read_entry,
};
use serde_json::json;
use std::fs::File;
use std::io::{BufRead, BufReader, Read};
use std::path::Path;
use std::process::ExitCode;

/// No entry is longer; a line without an end must not fill the memory.
const MAX_LINE: u64 = 16 << 20;

/// Everything that was looked at.
struct Checked {
    report: ChainReport,
    head: Option<Proof>,
    checkpoint: Option<Proof>,
    /// What is wrong besides the chain itself.
    problems: Vec<String>,
}

pub(super) fn verify(args: &AuditVerifyArgs) -> Result<ExitCode, Failure> {
    let keys = read_keys(args.keys.as_deref())?;
    let checked = check(args, keys.as_ref())?;
    let verdict = checked.verdict();
    match args.json {
        true => println!("{}", checked.json(verdict)),
        false => checked.lines(verdict).iter().for_each(|text| println!("{}", line(text))),
    }
    Ok(verdict.into())
}

fn check(args: &AuditVerifyArgs, keys: Option<&KeyList>) -> Result<Checked, Failure> {
    let mut problems = Vec::new();
    let mut note = |what: &str, error: ProofError| problems.push(format!("the {what}: {error}"));
    let head = match &args.head {
        Some(path) => Head::open(&read_envelope(path)?, keys).map_err(|error| note("head", error)).ok(),
        None => None,
    };
    let (head, head_proof) = head.unzip();
    let failed = |error: std::io::Error| Failure::new(format!("{}: {error}", args.file.display()));
    let mut lines = Lines { reader: BufReader::new(File::open(&args.file).map_err(failed)?), number: 0 };
    let header = read_header(&args.file, &mut lines)?;
    let checkpoint = header.checkpoint.as_ref().and_then(|envelope| {
        Checkpoint::open(envelope, keys).map_err(|error| note("checkpoint", error)).ok()
    });
    let (checkpoint, checkpoint_proof) = checkpoint.unzip();
    let mut chain = ChainCheck::new(&header.tenant, checkpoint.as_ref(), head);
    while let Some(text) = lines.next().map_err(failed)? {
        match read_entry(&text) {
            Ok(entry) => chain.push(&entry),
            Err(error) => {
                problems.push(format!("line {}: {error}", lines.number));
                break;
            }
        }
    }
    Ok(Checked { report: chain.finish(), head: head_proof, checkpoint: checkpoint_proof, problems })
}

fn read_header(path: &Path, lines: &mut Lines) -> Result<ExportHeader, Failure> {
    let failed = |why: String| Failure::new(format!("{}: it is no exported audit: {why}", path.display()));
    let first = lines.next().map_err(|error| failed(error.to_string()))?;
    let first = first.ok_or_else(|| failed("it is empty".to_owned()))?;
    ExportHeader::read(&first).map_err(|error| failed(error.to_string()))
}

struct Lines {
    reader: BufReader<File>,
    number: u64,
}

impl Lines {
    fn next(&mut self) -> std::io::Result<Option<String>> {
        let mut text = String::new();
        let read = (&mut self.reader).take(MAX_LINE).read_line(&mut text)?;
        self.number += 1;
        Ok((read > 0).then_some(text))
    }
}

impl Checked {
    fn verdict(&self) -> Verdict {
        if !self.report.is_whole() || !self.problems.is_empty() {
            return Verdict::Broken;
        }
        let is_unchecked = |proof: &Option<Proof>| proof.as_ref().is_some_and(|proof| !proof.is_signed());
        match self.report.is_proven() && !is_unchecked(&self.head) && !is_unchecked(&self.checkpoint) {
            true => Verdict::Proven,
            false => Verdict::Unproven,
        }
    }

    fn json(&self, verdict: Verdict) -> serde_json::Value {
        let Self { report, head, checkpoint, problems } = self;
        json!({"verdict": verdict, "chain": report, "head": head, "checkpoint": checkpoint, "problems": problems})
    }

    fn lines(&self, verdict: Verdict) -> Vec<String> {
        let ChainReport { tenant, entries, starts_after, last, findings, more_findings, tail } = &self.report;
        let mut lines = vec![match starts_after {
            0 => format!("{entries} entries of {tenant}, up to {last}"),
            _ => format!(
                "{entries} entries of {tenant}, from {} to {last}, after a checkpoint",
                starts_after + 1
            ),
        }];
        lines.extend(self.problems.iter().map(|problem| format!("broken: {problem}")));
        lines.extend(findings.iter().map(|finding| format!("broken: {finding}")));
        if *more_findings > 0 {
            lines.push(format!("broken: and {more_findings} more"));
        }
        match (verdict, tail) {
            (Verdict::Broken, _) => {}
            (_, Tail::Proven { up_to, at, after: 0 }) => {
                lines.push(format!("whole up to entry {up_to}, its last at {at}"));
            }
            (_, Tail::Proven { up_to, at, after }) => lines.push(format!(
                "whole up to entry {up_to}, the last at {at}; unproven: whether any is missing after the {after} newer ones"
            )),
            (_, Tail::Unproven) => {
                lines.push("whole in itself; unproven: whether entries are missing at the end (give --head)".to_owned());
            }
        }
        for (what, proof) in [("head", &self.head), ("checkpoint", &self.checkpoint)] {
            match proof {
                Some(Proof::Signed { keyid }) => lines.push(format!("the {what} is signed by {keyid}")),
                Some(Proof::Unchecked) => {
                    lines
                        .push(format!("unproven: the signature of the {what} was not checked (give --keys)"));
                }
                None => {}
            }
        }
        lines
    }
}
