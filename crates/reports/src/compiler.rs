//! What compilers print for people, by the forms that most of them share.
//!
//! Such output has no end that could be missing: that it is complete means that all of it was read, and whether the
//! build went well is told by the exit code as well.

use crate::collect::{Collector, Place};
use crate::lines::lines;
use crate::{End, complete};
use cofferdam_core::Severity;

pub(crate) fn parse(text: &str, found: &mut Collector) -> End {
    let mut headline = None::<(Severity, &str)>;
    for line in lines(text) {
        if let Some((severity, message)) = headline.take() {
            if let Some(place) = line.trim_start().strip_prefix("--> ").and_then(plain_place) {
                found.diagnostic(place, severity, message);
                continue;
            }
            // The linker's errors have no place, and the last lines of rustc and cargo only count.
            if severity == Severity::Error && !is_count(message) {
                found.diagnostic(Place::default(), severity, message);
            }
        }
        if line.starts_with(' ') || line.starts_with('\t') {
            continue;
        }
        if let Some((place, severity, message)) = placed(line).or_else(|| tsc(line)).or_else(|| linker(line))
        {
            found.diagnostic(place, severity, message);
        } else {
            headline = rustc(line);
        }
    }
    if let Some((Severity::Error, message)) = headline.filter(|(_, message)| !is_count(message)) {
        found.diagnostic(Place::default(), Severity::Error, message);
    }
    complete()
}

fn severity(word: &str) -> Option<Severity> {
    Some(match word {
        "error" | "fatal error" | "internal compiler error" => Severity::Error,
        "warning" => Severity::Warning,
        "note" | "remark" | "info" => Severity::Note,
        _ => return None,
    })
}

/// `file:line:column: severity: message`; javac has no column, and go no severity.
fn placed(line: &str) -> Option<(Place<'_>, Severity, &str)> {
    let (file, rest) = split_file(line)?;
    let (number, rest) = rest.split_once(':')?;
    let line = number.parse().ok()?;
    let (column, rest) = match rest.split_once(':') {
        Some((column, rest)) if column.parse::<u64>().is_ok() => (column.parse().ok(), rest),
        _ => (None, rest),
    };
    let place = Place { file: Some(file), line: Some(line), column };
    let rest = rest.strip_prefix(' ')?;
    if let Some((word, message)) = rest.split_once(": ")
        && let Some(severity) = severity(word)
    {
        return Some((place, severity, message));
    }
    // Go says only what is wrong. Others' lines that look like it have no place with a column.
    (column.is_some() && file.ends_with(".go")).then_some((place, Severity::Error, rest))
}

/// The file before the first colon that a number follows: a name may have colons, too.
fn split_file(line: &str) -> Option<(&str, &str)> {
    let colon = |(at, _): &(usize, &str)| line[at + 1..].starts_with(|c: char| c.is_ascii_digit());
    let (at, _) = line.match_indices(':').find(colon)?;
    (at > 0).then(|| (&line[..at], &line[at + 1..]))
}

/// `file(line,column): error TS1: message`.
fn tsc(line: &str) -> Option<(Place<'_>, Severity, &str)> {
    let (place, rest) = line.split_once("): ")?;
    let (file, numbers) = place.rsplit_once('(')?;
    let (row, column) = numbers.split_once(',')?;
    let (word, message) = rest.split_once(' ')?;
    let place = Place { file: Some(file), line: Some(row.parse().ok()?), column: column.parse().ok() };
    Some((place, severity(word)?, message))
}

/// What a linker, make or a driver says, which has no line.
fn linker(line: &str) -> Option<(Place<'_>, Severity, &str)> {
    let is_error = line.contains("undefined reference to ") || line.starts_with("collect2: error: ");
    let is_error = is_error || (line.starts_with("make: *** ") || line.starts_with("error TS"));
    let is_error = is_error || line.contains(": fatal error: ");
    is_error.then_some((Place::default(), Severity::Error, line))
}

/// The first line of what rustc says; its place is on the next.
fn rustc(line: &str) -> Option<(Severity, &str)> {
    let (word, message) = line.split_once(": ")?;
    let word = word.split_once('[').map_or(word, |(word, _)| word);
    severity(word).map(|severity| (severity, message))
}

fn plain_place(text: &str) -> Option<Place<'_>> {
    let (file, rest) = split_file(text)?;
    let (line, column) = rest.split_once(':')?;
    Some(Place { file: Some(file), line: Some(line.parse().ok()?), column: column.trim().parse().ok() })
}

fn is_count(message: &str) -> bool {
    let of_tests = ["test failed, to rerun ", "1 target failed:"].iter().any(|own| message.starts_with(own));
    of_tests
        || message.ends_with(" targets failed:")
        || message.starts_with("aborting due to ")
        || message.starts_with("could not compile ")
}
