//! Checking a chain: entry by entry, in the order of a file, without keeping them.
//!
//! It goes on after the first fault, so that what is wrong can be told apart: an edit leaves the numbers whole, a
//! removal leaves a gap, a swap leaves a gap that is filled later. A chain that was rewritten from some entry to its
//! end has no fault in itself. Only a signed head shows that, and only a head shows a missing end.

use crate::{Checkpoint, Head};
use cofferdam_core::{AuditEntry, chain_hash};
use serde::Serialize;
use std::fmt;

/// Enough to see what happened; one edit can put a million entries into doubt.
const MAX_FINDINGS: usize = 100;

/// Something that is wrong with a chain.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Finding {
    /// The entry does not follow from the one before: one of them was edited, or is of another chain.
    Altered { seq: i64 },
    /// Entries are missing.
    Gap { first: i64, last: i64 },
    /// The entry stands where it does not belong, or a second time.
    Moved { seq: i64 },
    /// The entry is not the one that the signed head names: the chain was written anew.
    Rewritten { seq: i64 },
    /// The chain ends before the signed head does.
    Cut { last: i64, head: i64 },
    /// The signed head or checkpoint is another tenant's.
    OtherTenant { tenant: String },
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Altered { seq } => {
                write!(f, "entry {seq} does not follow from the one before: edited, or of another chain")
            }
            Self::Gap { first, last } if first == last => write!(f, "entry {first} is missing"),
            Self::Gap { first, last } => write!(f, "entries {first} to {last} are missing"),
            Self::Moved { seq } => write!(f, "entry {seq} is not in its place, or there twice"),
            Self::Rewritten { seq } => write!(f, "entry {seq} is not the one of the signed head: rewritten"),
            Self::Cut { last, head } => {
                write!(f, "it ends with entry {last}, and the signed head is entry {head}")
            }
            Self::OtherTenant { tenant } => {
                write!(f, "the signed head or checkpoint is that of {}", tenant.escape_debug())
            }
        }
    }
}

/// How much of the end of a chain is known to be there.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Tail {
    /// Nothing is missing up to this entry, as of the head's time; what came after it is the chain's own word.
    Proven { up_to: i64, at: String, after: i64 },
    /// Without a head, entries may be missing at the end.
    Unproven,
}

/// What a check came to.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ChainReport {
    pub tenant: String,
    pub entries: u64,
    /// The number before the first entry: 0, or that of the checkpoint.
    pub starts_after: i64,
    pub last: i64,
    pub findings: Vec<Finding>,
    /// How many more there are than were listed.
    pub more_findings: u64,
    pub tail: Tail,
}

impl ChainReport {
    pub fn is_whole(&self) -> bool {
        self.findings.is_empty()
    }

    /// Whether nothing is missing at the end either.
    pub fn is_proven(&self) -> bool {
        self.is_whole() && matches!(self.tail, Tail::Proven { after: 0, .. })
    }
}

/// A check under way.
#[derive(Debug, Clone)]
pub struct ChainCheck {
    tenant: String,
    head: Option<Head>,
    starts_after: i64,
    last: i64,
    /// Of the entry before; not known after a gap.
    before: Option<String>,
    entries: u64,
    findings: Vec<Finding>,
    more_findings: u64,
}

impl ChainCheck {
    /// Begins at the first entry, or after what a checkpoint says was removed. Whether the two documents are signed
    /// is theirs to say, when they are opened.
    pub fn new(tenant: &str, checkpoint: Option<&Checkpoint>, head: Option<Head>) -> Self {
        let start = checkpoint.map(|Checkpoint(point)| point);
        let (starts_after, before) =
            start.map_or((0, String::new()), |point| (point.seq, point.hash.clone()));
        let mut check = Self {
            tenant: tenant.to_owned(),
            head: None,
            starts_after,
            last: starts_after,
            before: Some(before.clone()),
            entries: 0,
            findings: Vec::new(),
            more_findings: 0,
        };
        let named = start.into_iter().chain(head.as_ref().map(|Head(point)| point));
        for other in named.filter(|point| point.tenant != tenant) {
            check.found(Finding::OtherTenant { tenant: other.tenant.clone() });
        }
        check.head = head;
        check.compare_head(starts_after, &before);
        check
    }

    fn found(&mut self, finding: Finding) {
        match self.findings.len() < MAX_FINDINGS {
            true => self.findings.push(finding),
            false => self.more_findings += 1,
        }
    }

    fn compare_head(&mut self, seq: i64, hash: &str) {
        if self.head.as_ref().is_some_and(|Head(head)| head.seq == seq && head.hash != hash) {
            self.found(Finding::Rewritten { seq });
        }
    }

    /// The next entry of the file.
    pub fn push(&mut self, entry: &AuditEntry) {
        self.entries += 1;
        let next = self.last.saturating_add(1);
        if entry.seq < next {
            self.fill_gap(entry.seq);
            self.found(Finding::Moved { seq: entry.seq });
            return;
        }
        if entry.seq > next {
            self.found(Finding::Gap { first: next, last: entry.seq - 1 });
            self.before = None;
        }
        let expected = self.before.as_deref().map(|before| chain_hash(before, &self.tenant, entry));
        if expected.is_some_and(|expected| expected != entry.hash) {
            self.found(Finding::Altered { seq: entry.seq });
        }
        self.compare_head(entry.seq, &entry.hash);
        self.last = entry.seq;
        self.before = Some(entry.hash.clone());
    }

    /// An entry that comes late was not missing.
    fn fill_gap(&mut self, seq: i64) {
        self.findings.retain(|finding| *finding != Finding::Gap { first: seq, last: seq });
    }

    pub fn finish(mut self) -> ChainReport {
        let tail = match self.head.take() {
            Some(Head(head)) if head.seq > self.last => {
                self.found(Finding::Cut { last: self.last, head: head.seq });
                Tail::Unproven
            }
            // One from before what is left of the chain says nothing about it.
            Some(Head(head)) if head.seq >= self.starts_after => {
                Tail::Proven { up_to: head.seq, at: head.at, after: self.last - head.seq }
            }
            Some(_) | None => Tail::Unproven,
        };
        let Self { tenant, head: _, starts_after, last, before: _, entries, findings, more_findings } = self;
        ChainReport { tenant, entries, starts_after, last, findings, more_findings, tail }
    }
}
