//! Exported chains, as `cofferdam audit verify` reads them: a header, then entries, one in each line.

use cofferdam_core::chain_hash;
use cofferdam_proof::{ChainCheck, Checkpoint, ExportHeader, read_entry};

pub(crate) fn run(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else { return };
    let mut lines = text.lines();
    let Some(Ok(header)) = lines.next().map(ExportHeader::read) else { return };
    let checkpoint = header.checkpoint.as_ref().and_then(|envelope| Checkpoint::open(envelope, None).ok());
    let start = checkpoint.as_ref().map(|(checkpoint, _)| checkpoint);
    let mut check = ChainCheck::new(&header.tenant, start, None);
    let (mut next, mut before) =
        start.map_or((1, String::new()), |point| (point.0.seq + 1, point.0.hash.clone()));
    let mut is_whole = start.is_none_or(|point| point.0.tenant == header.tenant);
    for line in lines {
        let Ok(entry) = read_entry(line) else { return };
        is_whole &= entry.seq == next && entry.hash == chain_hash(&before, &header.tenant, &entry);
        (next, before) = (entry.seq.saturating_add(1), entry.hash.clone());
        check.push(&entry);
    }
    // However it is told, it is told exactly when something is wrong.
    assert_eq!(check.finish().is_whole(), is_whole);
}
