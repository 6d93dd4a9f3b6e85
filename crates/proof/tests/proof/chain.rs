//! Chains that somebody was at.

use crate::made::{NOW, OTHER, TENANT, chain, rehash};
use cofferdam_core::AuditEntry;
use cofferdam_proof::{ChainCheck, ChainPoint, ChainReport, Checkpoint, Finding, Head, Tail};
use proptest::prelude::*;

fn check(entries: &[AuditEntry], checkpoint: Option<&Checkpoint>, head: Option<Head>) -> ChainReport {
    let mut check = ChainCheck::new(TENANT, checkpoint, head);
    entries.iter().for_each(|entry| check.push(entry));
    check.finish()
}

fn point(entry: &AuditEntry) -> ChainPoint {
    ChainPoint::new(TENANT, entry.seq, &entry.hash, NOW)
}

fn head(entry: &AuditEntry) -> Option<Head> {
    Some(Head(point(entry)))
}

#[test]
fn a_whole_chain_is_proven_by_its_head_only() {
    let entries = chain(TENANT, 5);
    let alone = check(&entries, None, None);
    assert!(alone.is_whole() && !alone.is_proven(), "{alone:?}");
    assert_eq!((alone.tail, alone.entries, alone.last), (Tail::Unproven, 5, 5));
    assert!(check(&entries, None, head(&entries[4])).is_proven());
    // What came after the head is the chain's own word.
    let newer = check(&entries, None, head(&entries[2]));
    assert!(newer.is_whole() && !newer.is_proven(), "{newer:?}");
    assert!(matches!(newer.tail, Tail::Proven { up_to: 3, after: 2, .. }), "{newer:?}");
}

#[test]
fn an_edit_of_any_part_is_found() {
    let edits: [fn(&mut AuditEntry); 6] = [
        |entry| entry.at_ms += 1,
        |entry| entry.kind.push('x'),
        |entry| entry.actor = "key-two".to_owned(),
        |entry| entry.resource.clear(),
        |entry| entry.details = "{\"a\":1}".to_owned(),
        |entry| entry.hash = "0".repeat(64),
    ];
    for (i, edit) in edits.into_iter().enumerate() {
        let mut entries = chain(TENANT, 5);
        edit(&mut entries[2]);
        let found = check(&entries, None, None).findings;
        assert_eq!(found.first(), Some(&Finding::Altered { seq: 3 }), "edit {i}");
    }
}

/// A text that moves from one field into the next is an edit, too.
#[test]
fn fields_do_not_run_into_each_other() {
    let mut entries = chain(TENANT, 2);
    entries[1].kind.push('k');
    entries[1].actor = entries[1].actor[1..].to_owned();
    assert_eq!(check(&entries, None, None).findings, [Finding::Altered { seq: 2 }]);
}

#[test]
fn a_gap_and_a_swap_are_told_apart() {
    let mut gap = chain(TENANT, 6);
    gap.drain(2..4);
    assert_eq!(check(&gap, None, None).findings, [Finding::Gap { first: 3, last: 4 }]);
    let mut swap = chain(TENANT, 6);
    swap.swap(2, 3);
    assert_eq!(check(&swap, None, None).findings, [Finding::Moved { seq: 3 }]);
    let mut twice = chain(TENANT, 3);
    twice.push(twice[1].clone());
    assert_eq!(check(&twice, None, None).findings, [Finding::Moved { seq: 2 }]);
    let without_first = &chain(TENANT, 3)[1..];
    assert_eq!(check(without_first, None, None).findings, [Finding::Gap { first: 1, last: 1 }]);
}

/// Closing a gap by giving the later ones other numbers does not help.
#[test]
fn renumbered_entries_are_found() {
    let mut entries = chain(TENANT, 5);
    entries.remove(2);
    entries[2].seq = 3;
    entries[3].seq = 4;
    assert!(check(&entries, None, None).findings.contains(&Finding::Altered { seq: 3 }));
}

#[test]
fn a_row_of_another_tenant_does_not_fit() {
    let mut entries = chain(TENANT, 5);
    entries[2] = chain(OTHER, 5)[2].clone();
    let found = check(&entries, None, None).findings;
    assert_eq!(found, [Finding::Altered { seq: 3 }, Finding::Altered { seq: 4 }]);
    assert!(!check(&chain(OTHER, 3), None, None).is_whole(), "a whole chain under another's name");
}

#[test]
fn a_cut_tail_needs_a_head_to_be_seen() {
    let entries = chain(TENANT, 5);
    let cut = &entries[..3];
    assert!(check(cut, None, None).is_whole());
    let found = check(cut, None, head(&entries[4]));
    assert_eq!(found.findings, [Finding::Cut { last: 3, head: 5 }]);
    assert_eq!(check(&[], None, head(&entries[4])).findings, [Finding::Cut { last: 0, head: 5 }]);
    assert!(!found.is_proven());
}

/// With the store's rights, everything after an edit can be hashed anew. The head still knows.
#[test]
fn a_rewritten_chain_needs_a_head_to_be_seen() {
    let entries = chain(TENANT, 5);
    let mut rewritten = entries.clone();
    rewritten[1].actor = "key-two".to_owned();
    rehash(TENANT, &mut rewritten);
    assert!(check(&rewritten, None, None).is_whole());
    assert_eq!(check(&rewritten, None, head(&entries[4])).findings, [Finding::Rewritten { seq: 5 }]);
}

#[test]
fn a_head_of_another_tenant_is_refused() {
    let (entries, others) = (chain(TENANT, 3), chain(OTHER, 3));
    let foreign = Head(ChainPoint::new(OTHER, 3, &others[2].hash, NOW));
    let found = check(&entries, None, Some(foreign)).findings;
    assert!(found.contains(&Finding::OtherTenant { tenant: OTHER.to_owned() }), "{found:?}");
}

#[test]
fn a_chain_may_begin_at_a_checkpoint_and_only_there() {
    let entries = chain(TENANT, 8);
    let checkpoint = Checkpoint(point(&entries[3]));
    let whole = check(&entries[4..], Some(&checkpoint), head(&entries[7]));
    assert!(whole.is_proven(), "{whole:?}");
    assert_eq!((whole.starts_after, whole.last, whole.entries), (4, 8, 4));
    let late = check(&entries[5..], Some(&checkpoint), None);
    assert_eq!(late.findings, [Finding::Gap { first: 5, last: 5 }]);
    let wrong = Checkpoint(ChainPoint { hash: "0".repeat(64), ..point(&entries[3]) });
    assert_eq!(check(&entries[4..], Some(&wrong), None).findings, [Finding::Altered { seq: 5 }]);
    let foreign = Checkpoint(ChainPoint { tenant: OTHER.to_owned(), ..point(&entries[3]) });
    assert!(!check(&entries[4..], Some(&foreign), None).is_whole());
    // Everything was removed, and the head says so.
    assert!(check(&[], Some(&Checkpoint(point(&entries[7]))), head(&entries[7])).is_proven());
    // A head from before the checkpoint says nothing of what is left.
    let old = check(&entries[4..], Some(&checkpoint), head(&entries[1]));
    assert!(old.is_whole() && !old.is_proven(), "{old:?}");
}

#[test]
fn findings_are_bounded_and_counted() {
    let mut entries = chain(TENANT, 500);
    entries.iter_mut().for_each(|entry| entry.actor.push('x'));
    let report = check(&entries, None, None);
    assert_eq!((report.findings.len(), report.more_findings), (100, 400));
}

#[test]
fn there_is_nothing_after_the_largest_number() {
    let mut entries = chain(TENANT, 3);
    entries[1].seq = i64::MAX;
    let found = check(&entries, None, None).findings;
    assert_eq!(found, [Finding::Gap { first: 2, last: i64::MAX - 1 }, Finding::Moved { seq: 3 }]);
}

proptest! {
    /// Whatever is done to a chain, a head finds it: removed, repeated, moved or edited.
    #[test]
    fn no_change_goes_unseen(length in 2..12_usize, from in 0..12_usize, to in 0..12_usize, what in 0..4_u8) {
        let whole = chain(TENANT, length as i64);
        let (from, to) = (from % length, to % length);
        let mut entries = whole.clone();
        match what {
            0 => drop(entries.remove(from)),
            1 => entries.insert(to, whole[from].clone()),
            2 => entries.swap(from, to),
            _ => entries[from].details.push(' '),
        }
        let report = check(&entries, None, head(&whole[length - 1]));
        prop_assert_eq!(report.is_proven(), entries == whole, "{:?}", report);
    }

    #[test]
    fn numbers_at_the_edge_do_no_harm(seqs in proptest::collection::vec(any::<i64>(), 0..6)) {
        let mut entries = chain(TENANT, seqs.len() as i64);
        entries.iter_mut().zip(&seqs).for_each(|(entry, seq)| entry.seq = *seq);
        let report = check(&entries, None, None);
        prop_assert_eq!(report.is_whole(), seqs.iter().copied().eq(1..=seqs.len() as i64));
    }
}
